# RUN: %python %s heedc
# RUN: %python %s heedc --set=kind=reciprocal
"""Xiao and Zhu 2023, equations 53 and 56: Softmax(Q K^T / sqrt(d) + DNorm(omega)) V; DNorm is (-omega - mean) / deviation of a row, or 1 / omega over
its sum in the row (0 for the word itself). Sentences without their padding, whose keys, values and distances are garbage in the call."""
import sys

import numpy as np
from trees import distances, draw
from zoo import check, f64, softmax, uniform

RECIPROCAL = "--set=kind=reciprocal" in sys.argv


def normed(row):
    if RECIPROCAL:
        inverse = np.array([1 / w if w > 0 else 0 for w in row])
        return inverse / (inverse.sum() or 1)
    return (row.mean() - row) / (row.std() + 1e-6)


def oracle(inputs, weights):
    q, k, v, omega = f64(inputs["q"], inputs["k"], inputs["v"], inputs["omega"])
    out = np.zeros(v.shape)
    for b, h, i in np.ndindex(*q.shape[:3]):
        m = inputs["length"][b]
        if m:
            out[b, h, i] = softmax(k[b, h, :m] @ q[b, h, i] / np.sqrt(q.shape[3]) + normed(omega[b, i, :m])) @ v[b, h, :m]
    return {"o": out}


rng = np.random.default_rng(522)
cases = []
for lengths, h, n, e, f in [([13, 6], 3, 13, 8, 5), ([140], 2, 140, 4, 4), ([1], 1, 1, 4, 4), ([0, 4], 1, 5, 4, 3), ([2], 2, 2, 4, 4)]:
    b = len(lengths)
    q, k, v = uniform(rng, b, h, n, e), uniform(rng, b, h, n, e), uniform(rng, b, h, n, f)
    omega = rng.integers(0, 30, (b, n, n)).astype(np.int32)
    for s, m in enumerate(lengths):
        omega[s, :m, :m] = distances(draw(rng, m)) if m else 0
        k[s, :, m:], v[s, :, m:] = 100, np.nan
    cases.append((dict(q=q, k=k, v=v, omega=omega, length=np.array(lengths, np.int32)), None))
check("syntax/syntax-mask-soft-distance", oracle, cases)
