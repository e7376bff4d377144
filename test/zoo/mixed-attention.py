# RUN: %python %s heedc
"""Child et al. 2019, Beltagy et al. 2020: heads in turn with a band of their own width and strided (8); special tokens join all with all."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights, stride=8):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    b, h, n, e = q.shape
    out = np.zeros(q.shape[:3] + v.shape[3:])
    for bb in range(b):
        special = set(np.flatnonzero(inputs["special"][bb]))
        for hh in range(h):
            for i in range(n):
                w = inputs["window"][hh]
                own = range(max(0, i - w), min(n, i + w + 1)) if hh % 2 == 0 else range(i % stride, n, stride)
                keys = sorted(range(n) if i in special else special | set(own))
                if keys:
                    out[bb, hh, i] = softmax(k[bb, hh, keys] @ q[bb, hh, i] / np.sqrt(e)) @ v[bb, hh, keys]
    return {"o": out}


rng = np.random.default_rng(309)
cases = []
for b, n, e, f, window, density in [(2, 30, 8, 5, [1, 0, 4], 0.1), (1, 150, 8, 8, [5, 0], 0.02), (1, 1, 4, 4, [0], 0), (1, 9, 4, 4, [-1, 3], 0), (1, 9, 4, 4, [50], 1)]:
    h = len(window)
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f))
    cases.append((inputs | dict(special=rng.random((b, n)) < density, window=np.array(window, np.int32)), None))
check("sparse/mixed-attention", oracle, cases)
