# RUN: %python %s heedc
# RUN: %python %s heedc --set=E=33 --set=F=3
"""Yang et al. 2024: q, k, v = SiLU(conv(x W)), q and k of length 1, beta = sigmoid(x W), alpha = exp(-exp(A) softplus(x W + b)); of each head
S_t = S_(t-1) (alpha_t (1 - beta_t k_t k_t^T)) + beta_t v_t k_t^T, o_t = S_t q_t (equation 10); RMSNorm(o) SiLU(x W), times W_O. The same by one
triangular system (section 3.3, one chunk): u = (1 + tril(diag(beta) (Gamma . K K^T), -1))^-1 diag(beta) V, o = (Q K^T . Gamma, masked) u with
Gamma_ij = alpha_(j+1) .. alpha_i, where u_t is what step t adds along its key."""
import sys

import numpy as np
from zoo import check, heads, merge, uniform

options = {a[6:].split("=")[0]: int(a.split("=")[-1]) for a in sys.argv if a.startswith("--set=")}
E, F = options.get("E", 8), options.get("F", 16)
silu = lambda x: x / (1 + np.exp(-x))


def conv(x, w):
    """x: B x N x C, w: C x 1 x K; the last tap is the word's own."""
    y = np.zeros(x.shape)
    for n in range(x.shape[1]):
        for back in range(min(n + 1, w.shape[2])):
            y[:, n] += w[:, 0, w.shape[2] - 1 - back] * x[:, n - back]
    return y


def steps(q, k, v, log, beta):
    S, o = np.zeros((v.shape[1], k.shape[1])), np.zeros(v.shape)
    for t in range(len(q)):
        S = S @ (np.exp(log[t]) * (np.eye(k.shape[1]) - beta[t] * np.outer(k[t], k[t]))) + beta[t] * np.outer(v[t], k[t])
        o[t] = S @ q[t]
    return o


def system(q, k, v, log, beta):
    total = np.cumsum(log)
    gamma = np.exp(np.minimum(total[:, None] - total, 0))
    u = np.linalg.solve(np.eye(len(k)) + beta[:, None] * np.tril(gamma * (k @ k.T), -1), beta[:, None] * v)
    return np.tril(gamma * (q @ k.T)) @ u


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    w = {k: a.astype(np.float64) for k, a in weights.items()}
    dense = lambda y, at: y @ w[f"{at}_proj.weight"].T
    count = len(w["A_log"])
    q, k, v = (heads(silu(conv(dense(x, at), w[f"{at}_conv1d.weight"])), count) for at in "qkv")
    q, k = (y / np.maximum(np.sqrt((y * y).sum(-1, keepdims=True)), 1e-12) for y in (q, k))
    beta = 1 / (1 + np.exp(-dense(x, "b")))
    log = -np.exp(w["A_log"]) * np.logaddexp(0, dense(x, "a") + w["dt_bias"])
    o = np.zeros(v.shape)
    for b, h in np.ndindex(*o.shape[:2]):
        o[b, h] = system(q[b, h], k[b, h], v[b, h], log[b, :, h], beta[b, :, h])
        np.testing.assert_allclose(steps(q[b, h], k[b, h], v[b, h], log[b, :, h], beta[b, :, h]), o[b, h], rtol=0, atol=1e-11)
    o = o / np.sqrt((o * o).mean(-1, keepdims=True) + 1e-5) * w["o_norm.weight"]
    return {"y": dense(merge(o) * silu(dense(x, "g")), "o")}


def weights(d, h, taps=4):
    matrix = lambda out, into: uniform(rng, out, into) * np.float32(into**-0.5)
    dt = np.exp(rng.uniform(np.log(0.001), np.log(0.1), h))
    w = {f"{at}_proj.weight": matrix(out, d) for at, out in dict(q=h * E, k=h * E, v=h * F, b=h, a=h, g=h * F).items()}
    # The word's own tap is the largest. Values of much one sign keep results away from 0, where the norm would magnify their rounding.
    w |= {f"{at}_conv1d.weight": uniform(rng, h * size, 1, taps) / 4 for at, size in dict(q=E, k=E, v=F).items()}
    for at in "qkv":
        w[f"{at}_conv1d.weight"][:, :, -1] += 2
    return w | {"A_log": np.log(rng.uniform(1, 16, h)).astype(np.float32), "dt_bias": np.float32(np.log(np.expm1(dt))),
                "o_norm.weight": uniform(rng, F) + 1, "o_proj.weight": matrix(d, h * F)}


rng = np.random.default_rng(424)
cases = []
for b, n, d, h, taps in [(2, 17, 12, 3, 4), (1, 257, 16, 2, 4), (1, 1, 8, 1, 4), (3, 1, 5, 2, 4), (2, 0, 8, 2, 4), (2, 135, 20, 2, 3)]:
    cases.append((dict(x=uniform(rng, b, n, d)), weights(d, h, taps)))
# Head 0 forgets all but the word itself, head 1 nothing; head 2 writes with 0 or 1 by x's sign, head 3 never.
x, w = uniform(rng, 1, 140, 8), weights(8, 4)
x[0, :, 0] = np.where(rng.uniform(size=140) < 0.5, -1, 1)
w["dt_bias"][:2] = 200, -200
x[0, :, 1] = -1
w["b_proj.weight"][2:] = 0
w["b_proj.weight"][2, 0] = w["b_proj.weight"][3, 1] = 200
cases.append((dict(x=x), w))
check("linear/gated-delta-rule", oracle, cases)
