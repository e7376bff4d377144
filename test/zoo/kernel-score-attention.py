# RUN: %python %s heedc
# RUN: %python %s heedc --set=kernel=polynomial
"""Xiao and Zhu 2023, section 5.3.2: alpha_ij = K(q_i, k_j) / sum_j K(q_i, k_j) with K = exp(-|q - k|^2) or (q k + 1)^2."""
import sys
import numpy as np
from zoo import check, f64, uniform

if "--set=kernel=polynomial" in sys.argv:
    def K(q, k): return np.square(1 + np.dot(k, q))
else:
    def K(q, k): return np.exp(-np.linalg.norm(k - q, axis=-1) ** 2)


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    o = np.zeros(q.shape[:3] + v.shape[3:])
    for b, h, i in np.ndindex(*q.shape[:3]):
        a = K(q[b, h, i], k[b, h])
        o[b, h, i] = a @ v[b, h] / a.sum()
    return {"o": o}


rng = np.random.default_rng(409)
cases = []
for b, h, n, m, e, f in [(2, 2, 17, 23, 8, 5), (1, 1, 150, 140, 4, 8), (1, 1, 1, 1, 3, 2), (1, 3, 9, 131, 16, 6)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, m, e), v=uniform(rng, b, h, m, f)), None))
check("score/kernel-score-attention", oracle, cases)
