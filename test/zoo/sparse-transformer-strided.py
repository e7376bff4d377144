# RUN: %python %s heedc
"""Child et al. 2019, section 4.3: A1 = {t, t + 1, .., i} with t = max(0, i - l); A2 = {j <= i : (i - j) mod l = 0}; heads in turn, l = 12."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights, l=12):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    out = np.zeros(q.shape[:3] + v.shape[3:])
    for h in range(q.shape[1]):
        for i in range(q.shape[2]):
            keys = range(max(0, i - l), i + 1) if h % 2 == 0 else range(i, -1, -l)
            s = np.einsum("be,bje->bj", q[:, h, i], k[:, h, keys]) / np.sqrt(q.shape[-1])
            out[:, h, i] = np.einsum("bj,bjf->bf", softmax(s), v[:, h, keys])
    return {"o": out}


rng = np.random.default_rng(307)
cases = []
for b, h, n, e, f in [(2, 3, 41, 8, 5), (1, 2, 150, 8, 8), (1, 2, 7, 4, 4), (1, 2, 1, 4, 6)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f)), None))
check("sparse/sparse-transformer-strided", oracle, cases)
