# RUN: %python %s heedc
"""Kernes 2021: [x, PE] W = x W_1 + PE W_2. The oracle has the sum form, of the two parts of each projection."""
import numpy as np
from zoo import check, heads, linear, linear_weights, merge, softmax, uniform

WIDTH = 6


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    d = x.shape[-1]
    angles = np.outer(np.arange(x.shape[1]), [1e4 ** (-2 * t / WIDTH) for t in range(WIDTH // 2)])
    pe = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(-1, WIDTH)

    def project(name):
        w = weights[name + ".weight"].astype(np.float64)
        return heads(x @ w[:, :d].T + pe @ w[:, d:].T + weights[name + ".bias"], 4)

    q, k, v = project("query"), project("key"), project("value")
    a = softmax(np.einsum("bhie,bhje->bhij", q, k) / np.sqrt(d // 4))
    return {"y": linear(merge(a @ v), weights, "output")}


rng = np.random.default_rng(403)
cases = []
for b, n, d in [(2, 9, 16), (1, 135, 8), (3, 1, 4), (1, 40, 12)]:
    weights = linear_weights(rng, "output", d, d)
    for name in ("query", "key", "value"):
        weights |= linear_weights(rng, name, d, d + WIDTH)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("position/pe-concat", oracle, cases)
