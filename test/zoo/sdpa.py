# RUN: %python %s heedc
"""Vaswani et al. 2017, equation 1: softmax(Q K^T / sqrt(d_k)) V, rectangular."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    return {"o": softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v}


rng = np.random.default_rng(1)
cases = []
for b, h, n, m, e, f in [(1, 1, 1, 1, 1, 1), (2, 3, 17, 50, 8, 5), (1, 2, 129, 64, 64, 64), (1, 1, 5, 0, 4, 4), (1, 1, 3, 257, 33, 96)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, m, e), v=uniform(rng, b, h, m, f)), None))
check("core/sdpa", oracle, cases)
