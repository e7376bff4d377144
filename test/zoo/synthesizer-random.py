# RUN: %python %s heedc
"""Tay et al. 2021, section 3: Y = softmax(R) G(X), R a parameter of each head; of a longer R the first N rows and columns, before the softmax."""
import numpy as np
from zoo import check, heads, linear, linear_weights, merge, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    a = np.exp(weights["random_attn"].astype(np.float64)[:, : x.shape[1], : x.shape[1]])
    o = np.einsum("hij,bhje->bhie", a / a.sum(-1, keepdims=True), heads(linear(x, weights, "value"), 4))
    return {"y": linear(merge(o), weights, "output")}


rng = np.random.default_rng(217)
cases = []
for b, n, d, t in [(2, 9, 16, 12), (1, 140, 8, 140), (3, 33, 32, 64), (1, 1, 4, 1), (1, 1, 4, 5)]:
    weights = linear_weights(rng, "value", d, d) | linear_weights(rng, "output", d, d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights | {"random_attn": uniform(rng, 4, t, t) * 2}))
check("prior/synthesizer-random", oracle, cases)
