# RUN: %python %s heedc
"""Katharopoulos et al. 2020, equation 5: phi(Q) (phi(K)^T V) / (phi(Q) sum_j phi(k_j)), in the linear order."""
import numpy as np
from zoo import check, f64, uniform


def phi(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    q, k = phi(q), phi(k)
    return {"o": q @ (k.swapaxes(-1, -2) @ v) / (q @ k.sum(2)[..., None])}


rng = np.random.default_rng(9)
cases = []
for b, h, n, e, f in [(1, 1, 1, 4, 4), (2, 3, 50, 8, 5), (1, 1, 3000, 32, 32)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f)), None))
check("linear/linear-attention-bidir", oracle, cases)
