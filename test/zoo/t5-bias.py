# RUN: %python %s heedc
"""Raffel et al. 2020: bidirectional buckets, exact up to K/4 offsets a side, logarithmic up to 128, one table column per head."""
import math

import numpy as np
from zoo import check, f64, softmax, uniform


def bucket(offset, buckets, span=128):
    half = buckets // 2
    base = half if offset > 0 else 0
    distance, exact = abs(offset), half // 2
    if distance < exact:
        return base + distance
    return base + min(half - 1, exact + int(math.log(distance / exact) / math.log(span / exact) * (half - exact)))


def oracle(inputs, weights):
    q, k, v, table = f64(inputs["q"], inputs["k"], inputs["v"], inputs["table"])
    n, m = q.shape[2], k.shape[2]
    index = np.array([[bucket(j - i, len(table)) for j in range(m)] for i in range(n)])
    return {"o": softmax(q @ k.swapaxes(-1, -2) + table[index].transpose(2, 0, 1)) @ v}


rng = np.random.default_rng(11)
cases = []
for b, h, n, m, e, buckets in [(1, 2, 300, 300, 8, 32), (2, 3, 17, 40, 8, 32), (1, 1, 1, 1, 4, 16)]:
    q, k, v = uniform(rng, b, h, n, e), uniform(rng, b, h, m, e), uniform(rng, b, h, m, e)
    cases.append((dict(q=q, k=k, v=v, table=uniform(rng, buckets, h)), None))
check("position/t5-bias", oracle, cases)
