# RUN: %python %s heedc
"""Fan et al. 2021: S_ij = M_ij exp(q_i k_j / sqrt(d)) / sum_k M_ik exp(q_i k_k / sqrt(d)), M[t, s] = sigmoid(h_t W + P_(t-s) + U_head)."""
import numpy as np
from zoo import check, heads, linear, linear_weights, merge, uniform


def oracle(inputs, weights):
    x = inputs["h"].astype(np.float64)
    b, n, d = x.shape
    q, k, v = (heads(linear(x, weights, "attention." + name), 4) for name in ("query", "key", "value"))
    offset = weights["mask.offset"].astype(np.float64)
    zero = len(offset) // 2
    state = x @ weights["mask.state"].astype(np.float64)
    z = np.zeros((b, 4, n, n))
    for t in range(n):
        for s in range(n):
            z[:, :, t, s] = state[:, None, t] + offset[zero + t - s] + weights["mask.head"]
    e = np.exp(q @ k.swapaxes(-1, -2) / np.sqrt(d // 4)) / (1 + np.exp(-z))
    return {"y": linear(merge(e / e.sum(-1, keepdims=True) @ v), weights, "attention.output")}


rng = np.random.default_rng(203)
cases = []
for b, n, d, t in [(2, 9, 16, 9), (1, 140, 8, 150), (2, 33, 32, 64), (1, 1, 4, 1), (2, 1, 4, 6)]:
    weights = {"mask.state": uniform(rng, d), "mask.offset": uniform(rng, 2 * t - 1) * 4, "mask.head": uniform(rng, 4)}
    for name in ("query", "key", "value", "output"):
        weights |= linear_weights(rng, "attention." + name, d, d)
    cases.append((dict(h=uniform(rng, b, n, d)), weights))
check("score/mask-attention-network", oracle, cases)
