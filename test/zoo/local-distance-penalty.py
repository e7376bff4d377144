# RUN: %python %s heedc
"""Xiao and Zhu 2023, equations 64 and 65: softmax(Q K^T / sqrt(d) - gamma G) V, G(i, j) = |i - j|."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    n = q.shape[2]
    G = np.array([[abs(i - j) for j in range(n)] for i in range(n)])
    return {"o": softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) - inputs["gamma"] * G) @ v}


rng = np.random.default_rng(205)
cases = []
for b, h, n, e, f, gamma in [(1, 2, 150, 8, 8, 0.01), (1, 1, 300, 4, 4, 2.5), (2, 3, 19, 16, 5, 0.5), (1, 1, 1, 4, 4, 1.0), (1, 2, 33, 8, 8, 0.0)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f), gamma=gamma), None))
check("prior/local-distance-penalty", oracle, cases)
