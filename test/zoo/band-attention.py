# RUN: %python %s heedc
"""Yang et al. 2019: the softmax of query i runs over the keys j with |i - j| <= window, taken here as a slice."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    n, w = q.shape[2], inputs["window"]
    out = np.zeros(q.shape[:3] + v.shape[3:])
    for i in range(n):
        part = slice(max(0, i - w), min(n, i + w + 1)) if w >= 0 else slice(0, 0)
        s = np.einsum("bhe,bhje->bhj", q[:, :, i], k[:, :, part]) / np.sqrt(q.shape[-1])
        out[:, :, i] = np.einsum("bhj,bhjf->bhf", softmax(s), v[:, :, part])
    return {"o": out}


rng = np.random.default_rng(7)
cases = []
for b, h, n, e, f, w in [(1, 2, 40, 8, 8, 3), (1, 1, 300, 16, 16, 37), (2, 1, 5, 4, 4, 100), (1, 1, 9, 4, 6, 0), (1, 1, 7, 4, 4, -1)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f), window=w), None))
check("sparse/band-attention", oracle, cases)
