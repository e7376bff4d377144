# RUN: %python %s heedc
"""Qin et al. 2022, equation 9, with the cosine as it stands: S = relu(Q) relu(K)^T cos(pi (i - j) / 2N), rows divided by their sums."""
import numpy as np
from zoo import check, f64, uniform


def oracle(inputs, weights):
    q, k, v = f64(*(inputs[n] for n in ("q", "k", "v")))
    i = np.arange(q.shape[2])
    s = np.einsum("bhie,bhje->bhij", np.maximum(q, 0), np.maximum(k, 0)) * np.cos(np.pi * (i[:, None] - i) / (2 * len(i)))
    return {"o": np.einsum("bhij,bhjf->bhif", s, v) / s.sum(-1, keepdims=True)}


rng = np.random.default_rng(27)
cases = []
for b, h, n, e, f in [(1, 2, 20, 8, 8), (2, 3, 7, 16, 6), (1, 1, 1, 8, 1), (1, 2, 300, 16, 16)]:
    # Most features are positive: no row's sum is near 0.
    q, k = (uniform(rng, b, h, n, e) + np.float32(0.5) for _ in range(2))
    cases.append((dict(q=q, k=k, v=uniform(rng, b, h, n, f)), None))
check("linear/cosformer", oracle, cases)
