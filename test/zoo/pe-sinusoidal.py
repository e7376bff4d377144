# RUN: %python %s heedc
"""Vaswani et al. 2017, section 3.5: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(same), added to embeddings times sqrt(d).

Rows behind an offset are had by the shift identity: PE(pos + m) is PE(pos), each pair turned by the angle of m.
"""
import math

import numpy as np
from zoo import check, f64, uniform


def pairs(position, d):
    angles = [position / 10000 ** (2 * k / d) for k in range((d + 1) // 2)]
    return np.array([[math.sin(a), math.cos(a)] for a in angles])


def shifted(position, shift, d):
    (s, c), (t, u) = pairs(position, d).T, pairs(shift, d).T
    return np.stack([s * u + c * t, c * u - s * t], -1).reshape(-1)[:d]


def oracle(inputs, weights):
    word, = f64(weights["embedding.weight"])
    ids, d = inputs["ids"], word.shape[1]
    pe = np.array([shifted(n, inputs.get("offset", 0), d) for n in range(ids.shape[1])])
    return {"y": word[ids] * math.sqrt(d) + pe}


rng = np.random.default_rng(101)
cases = []
for b, n, v, d, offset in [(2, 150, 11, 16, None), (1, 60, 30, 32, 4900), (2, 7, 5, 9, 123), (1, 1, 1, 1, 2), (3, 1, 4, 8, 4999)]:
    ids = rng.integers(0, v, (b, n), dtype=np.int32)
    cases.append((dict(ids=ids) | ({} if offset is None else dict(offset=offset)), {"embedding.weight": uniform(rng, v, d)}))
check("position/pe-sinusoidal", oracle, cases)
