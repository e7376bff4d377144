# RUN: %python %s heedc
"""Guo et al. 2019: softmax over j of q_i k_j / sqrt(d) - |w (i - j)^2 + b|, w > 0, b <= 0."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    n = q.shape[2]
    bias = np.array([[-abs(inputs["w"] * (i - j) ** 2 + inputs["b"]) for j in range(n)] for i in range(n)])
    return {"o": softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + bias) @ v}


rng = np.random.default_rng(208)
cases = []
for b, h, n, e, f, w, shift in [(1, 2, 150, 8, 8, 0.0005, -2), (2, 1, 140, 4, 4, 0.3, -1.5), (2, 3, 19, 16, 5, 1.0, 0), (1, 1, 1, 4, 4, 1.0, -1)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f), w=w, b=shift), None))
check("prior/gaussian-transformer", oracle, cases)
