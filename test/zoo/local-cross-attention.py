# RUN: %python %s heedc
"""Xiao and Zhu 2023, equations 67 and 68: softmax(S^q H^k^T / sqrt(d) - gamma G) H^v, G(i, j) = (mu_i - j)^2 / (2 sigma_i^2),
mu_i and sigma_i = length times the sigmoid of the two results of FFN(s_i). Rows of the source behind its length hold NaN.
"""
import numpy as np
from zoo import check, heads, linear, linear_weights, merge, softmax, uniform


def oracle(inputs, weights):
    target, source = inputs["s"].astype(np.float64), inputs["h"].astype(np.float64)
    o = np.zeros_like(target)
    q = heads(linear(target, weights, "query"), 4)
    ffn = linear(np.maximum(linear(target, weights, "ffn.up"), 0), weights, "ffn.down")
    for b, m in enumerate(inputs["length"]):
        mu, sigma = m / (1 + np.exp(-ffn[b, :, 0])), m / (1 + np.exp(-ffn[b, :, 1]))
        k, v = (heads(linear(source[b : b + 1, :m], weights, name), 4)[0] for name in ("key", "value"))
        s = q[b] @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        for j in range(m):
            s[:, :, j] -= inputs.get("gamma", 1) * (mu - j) ** 2 / (2 * sigma**2)
        o[b] = merge((softmax(s) @ v)[None])[0]
    return {"y": linear(o, weights, "output")}


rng = np.random.default_rng(209)
cases = []
for lengths, n, m, d, c, gamma in [([13, 5, 0], 9, 13, 16, 8, 1.0), ([150], 135, 150, 8, 8, 0.5), ([1], 1, 1, 4, 3, 2.0), ([1, 40], 17, 40, 32, 16, 0.0)]:
    source = uniform(rng, len(lengths), m, c)
    for b, length in enumerate(lengths):
        source[b, length:] = np.nan
    weights = linear_weights(rng, "query", d, d) | linear_weights(rng, "key", d, c) | linear_weights(rng, "value", d, c)
    weights |= linear_weights(rng, "output", d, d) | linear_weights(rng, "ffn.up", 16, d) | linear_weights(rng, "ffn.down", 2, 16)
    inputs = dict(s=uniform(rng, len(lengths), n, d), h=source, length=np.array(lengths, np.int32), gamma=gamma)
    cases.append((inputs, weights))
check("prior/local-cross-attention", oracle, cases)
