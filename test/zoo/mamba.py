# RUN: %python %s heedc
"""Gu and Dao 2023, algorithm 2 and section 3.4: x, z = u W_in; x = SiLU(conv(x)), causal, each channel by itself; delta = softplus(..), B, C from x;
then h_t = exp(delta_t A) h_(t-1) + delta_t B_t x_t, y_t = C_t h_t + D x_t; (y SiLU(z)) W_out. Here as one sum over all earlier words (the
semiseparable matrix), y_t = sum_{j <= t} C_t exp(A (delta_(j+1) + .. + delta_t)) delta_j B_j x_j; the recurrence is run beside it."""
import numpy as np
from zoo import check, uniform

silu = lambda x: x / (1 + np.exp(-x))


def conv(x, w, bias=0.0):
    """x: N x C, w: C x 1 x K; the last tap is the word's own."""
    taps = w.shape[2]
    padded = np.concatenate([np.zeros((taps - 1, x.shape[1])), x])
    return np.array([(padded[n : n + taps] * w[:, 0].T).sum(0) for n in range(len(x))]).reshape(x.shape) + bias


def selective(x, delta, A, B, C):
    """One sentence: x, delta N x C; A C x E; B, C N x E."""
    n = len(x)
    steps, h = np.zeros(x.shape), np.zeros(A.shape)
    for t in range(n):
        h = np.exp(delta[t, :, None] * A) * h + (delta[t] * x[t])[:, None] * B[t]
        steps[t] = h @ C[t]
    total = np.cumsum(delta, 0)
    y = np.zeros(x.shape)
    for t in range(n):
        decay = np.exp((total[t] - total[: t + 1])[:, :, None] * A)  # t + 1 words x C x E
        y[t] = np.einsum("e,jce,je,jc->c", C[t], decay, B[: t + 1], delta[: t + 1] * x[: t + 1])
    np.testing.assert_allclose(steps, y, rtol=0, atol=1e-10)
    return y


def oracle(inputs, weights):
    w = {k: a.astype(np.float64) for k, a in weights.items()}
    A = -np.exp(w["A_log"])
    c, e = A.shape
    y = np.zeros(inputs["u"].shape)
    for b, u in enumerate(inputs["u"].astype(np.float64)):
        xz = u @ w["in_proj.weight"].T
        x = silu(conv(xz[:, :c], w["conv1d.weight"], w["conv1d.bias"]))
        low, B, C = np.split(x @ w["x_proj.weight"].T, [-2 * e, -e], 1)
        delta = np.log1p(np.exp(low @ w["dt_proj.weight"].T + w["dt_proj.bias"]))
        o = selective(x, delta, A, B, C) + w["D"] * x
        y[b] = o * silu(xz[:, c:]) @ w["out_proj.weight"].T
    return {"y": y}


def weights(d, e, k=4):
    c, r = 2 * d, -(-d // 16)
    matrix = lambda out, into: uniform(rng, out, into) * np.float32(max(into, 1) ** -0.5)
    # As the paper begins: A = -1 .. -E, steps of 0.001 to 0.1.
    dt = np.exp(rng.uniform(np.log(0.001), np.log(0.1), c))
    return {"in_proj.weight": matrix(2 * c, d), "conv1d.weight": uniform(rng, c, 1, k), "conv1d.bias": uniform(rng, c),
            "x_proj.weight": matrix(r + 2 * e, c), "dt_proj.weight": matrix(c, r), "dt_proj.bias": np.float32(np.log(np.expm1(dt))),
            "out_proj.weight": matrix(d, c), "D": uniform(rng, c), "A_log": np.log(np.tile(np.arange(1, e + 1), (c, 1))).astype(np.float32)}


rng = np.random.default_rng(421)
cases = []
for b, n, d, e, k in [(2, 7, 3, 5, 4), (1, 1, 1, 1, 4), (3, 40, 17, 9, 4), (1, 200, 12, 16, 4), (2, 0, 3, 4, 4), (2, 3, 35, 16, 4), (1, 133, 5, 3, 1),
                      (1, 4, 4, 4, 9)]:
    cases.append((dict(u=uniform(rng, b, n, d)), weights(d, e, k)))
# Steps so long that all but the word itself is forgotten, so short that nothing is (and nothing written); states that decay by e^-200 and not at all.
w = weights(6, 4)
w["dt_proj.bias"][:4] = 30, -30, -110, 90
w["A_log"][:] = np.log([1e-30, 2, 200, 1e4])
cases.append((dict(u=uniform(rng, 2, 135, 6)), w))
check("recurrence/mamba", oracle, cases)
