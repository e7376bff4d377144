# RUN: %python %s heedc
"""Hassani et al. 2023, equations 2 to 4, query by query: A = q K_rho^T + B_rho of the K nearest keys, softmax, A V_rho."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v, bias = f64(*(inputs[n] for n in ("q", "k", "v", "bias")))
    n, size = q.shape[2], (bias.shape[1] + 1) // 2
    o = np.zeros(q.shape[:3] + v.shape[3:])
    for i in range(n):
        first = min(max(i - size // 2, 0), n - size)
        near = slice(first, first + size)
        a = np.einsum("bhe,bhue->bhu", q[:, :, i], k[:, :, near]) / np.sqrt(q.shape[-1]) + bias[:, first - i + size - 1 : first - i + 2 * size - 1]
        o[:, :, i] = np.einsum("bhu,bhuf->bhf", softmax(a), v[:, :, near])
    return {"o": o}


rng = np.random.default_rng(26)
cases = []
for b, h, n, e, f in [(1, 2, 20, 8, 8), (2, 3, 7, 4, 6), (1, 1, 8, 1, 1), (1, 2, 150, 16, 5)]:
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f))
    cases.append((inputs | dict(bias=uniform(rng, h, 13)), None))
check("sparse/neighborhood-attention", oracle, cases)
