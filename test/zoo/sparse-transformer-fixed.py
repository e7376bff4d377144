# RUN: %python %s heedc
"""Child et al. 2019, section 4.3: A1 = {j <= i in the block of i}, A2 = {j <= i among the last c columns of a block}; l = 16, c = 3.
Row 13 is the first that A2 gives a key (positions from 0)."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights, l=16, c=3):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    n = q.shape[2]
    summary = [start + t for start in range(0, n, l) for t in range(l - c, l)]
    out = np.zeros(q.shape[:3] + v.shape[3:])
    for h in range(q.shape[1]):
        for i in range(n):
            keys = list(range(i - i % l, i + 1)) if h % 2 == 0 else [j for j in summary if j <= i]
            if keys:
                s = np.einsum("be,bje->bj", q[:, h, i], k[:, h, keys]) / np.sqrt(q.shape[-1])
                out[:, h, i] = np.einsum("bj,bjf->bf", softmax(s), v[:, h, keys])
    return {"o": out}


rng = np.random.default_rng(308)
cases = []
for b, h, n, e, f in [(2, 3, 41, 8, 5), (1, 2, 150, 8, 8), (1, 2, 14, 4, 4), (1, 2, 1, 4, 6)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f)), None))
check("sparse/sparse-transformer-fixed", oracle, cases)
