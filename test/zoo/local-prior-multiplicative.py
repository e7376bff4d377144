# RUN: %python %s heedc
"""Xiao and Zhu 2023, equation 70: softmax((Q K^T / sqrt(d)) * G') V, here with G'(i, j) = exp(-gamma |i - j|)."""
import numpy as np
from zoo import check, f64, uniform


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    n = q.shape[2]
    G = np.array([[np.exp(-inputs.get("gamma", 0.1)) ** abs(i - j) for j in range(n)] for i in range(n)])
    a = np.exp(np.einsum("bhie,bhje,ij->bhij", q, k, G) / np.sqrt(q.shape[-1]))
    return {"o": np.einsum("bhij,bhjf->bhif", a / a.sum(-1, keepdims=True), v)}


rng = np.random.default_rng(211)
cases = []
for b, h, n, e, f in [(1, 2, 150, 8, 8), (2, 3, 19, 16, 5), (1, 1, 1, 4, 4)]:
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f))
    cases += [(inputs, None), (inputs | dict(gamma=2.0), None), (inputs | dict(gamma=0.0), None)]
check("prior/local-prior-multiplicative", oracle, cases)
