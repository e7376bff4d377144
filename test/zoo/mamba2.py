# RUN: %python %s heedc
# RUN: %python %s heedc --set=groups=2 --set=E=5
"""Dao and Gu 2024: z, x, B, C, delta = u W_in; x, B, C = SiLU(conv(x, B, C)); delta = softplus(delta + bias); of each head y = M x + D x with the
matrix M_ij = C_i.B_j exp(A (delta_(j+1) + .. + delta_i)) delta_j for j <= i, the quadratic form of the duality; RMSNorm(y SiLU(z)) W_out. The
recurrence S_t = exp(delta_t A) S_(t-1) + delta_t B_t x_t, y_t = C_t S_t is run beside it."""
import sys

import numpy as np
from zoo import check, uniform

options = dict(a[6:].split("=") for a in sys.argv if a.startswith("--set="))
GROUPS, STATE = int(options.get("groups", 1)), int(options.get("E", 16))
silu = lambda x: x / (1 + np.exp(-x))


def conv(x, w, bias):
    """x: N x C, w: C x 1 x K; the last tap is the word's own."""
    taps = w.shape[2]
    padded = np.concatenate([np.zeros((taps - 1, x.shape[1])), x])
    return np.array([(padded[n : n + taps] * w[:, 0].T).sum(0) for n in range(len(x))]).reshape(x.shape) + bias


def head(x, B, C, delta, a):
    total = np.cumsum(delta)
    decay = np.exp(np.minimum(a * (total[:, None] - total), 0))
    y = (np.tril(C @ B.T) * decay * delta) @ x
    S, steps = np.zeros((B.shape[1], x.shape[1])), np.zeros(x.shape)
    for t in range(len(x)):
        S = np.exp(delta[t] * a) * S + delta[t] * np.outer(B[t], x[t])
        steps[t] = C[t] @ S
    np.testing.assert_allclose(steps, y, rtol=0, atol=1e-10)
    return y


def oracle(inputs, weights):
    w = {k: a.astype(np.float64) for k, a in weights.items()}
    y = np.zeros(inputs["u"].shape)
    for b, u in enumerate(inputs["u"].astype(np.float64)):
        n, width, count = len(u), 2 * u.shape[1], len(w["D"])
        z, xbc, delta = np.split(u @ w["in_proj.weight"].T, [width, -count], 1)
        x, B, C = np.split(silu(conv(xbc, w["conv1d.weight"], w["conv1d.bias"])), [width, width + GROUPS * STATE], 1)
        delta = np.logaddexp(0, delta + w["dt_bias"])
        x, B, C = x.reshape(n, count, width // count), B.reshape(n, GROUPS, STATE), C.reshape(n, GROUPS, STATE)
        o = np.zeros(x.shape)
        for h in range(count):
            g = h // (count // GROUPS)
            o[:, h] = head(x[:, h], B[:, g], C[:, g], delta[:, h], -np.exp(w["A_log"][h])) + w["D"][h] * x[:, h]
        o = o.reshape(n, width) * silu(z)
        o = o / np.sqrt((o * o).mean(1, keepdims=True) + 1e-5) * w["norm.weight"]
        y[b] = o @ w["out_proj.weight"].T
    return {"y": y}


def weights(d, h, k=4):
    channels = 2 * d + 2 * GROUPS * STATE
    matrix = lambda out, into: uniform(rng, out, into) * np.float32(max(into, 1) ** -0.5)
    dt = np.exp(rng.uniform(np.log(0.001), np.log(0.1), h))
    # As the paper begins: A between -16 and -1, steps of 0.001 to 0.1.
    return {"in_proj.weight": matrix(2 * d + channels + h, d), "conv1d.weight": uniform(rng, channels, 1, k), "conv1d.bias": uniform(rng, channels),
            "A_log": np.log(rng.uniform(1, 16, h)).astype(np.float32), "D": uniform(rng, h), "dt_bias": np.float32(np.log(np.expm1(dt))),
            "norm.weight": uniform(rng, 2 * d) + 1, "out_proj.weight": matrix(d, 2 * d)}


rng = np.random.default_rng(422)
cases = []
for b, n, d, h, k in [(2, 7, 6, 4, 4), (1, 1, 1, 2, 4), (3, 40, 18, 4, 4), (1, 300, 16, 2, 4), (2, 0, 3, 2, 4), (2, 3, 35, 10, 4), (1, 133, 5, 2, 1)]:
    cases.append((dict(u=uniform(rng, b, n, d)), weights(d, h, k)))
# Heads that forget all but the word itself, that forget nothing and write nothing, that write long steps and forget none, and that decay by e^-200.
w = weights(6, 4)
w["dt_bias"][:] = 30, -110, 1, 1
w["A_log"][:] = np.log([30, 1e-3, 1e-30, 150])
cases.append((dict(u=uniform(rng, 2, 270, 6)), w))
check("recurrence/mamba2", oracle, cases)
