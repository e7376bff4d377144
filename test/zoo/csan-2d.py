# RUN: %python %s heedc
# RUN: %python %s heedc --set=area=1
# RUN: %python %s heedc --set=window=1 --set=area=5
"""Yang et al. 2019, equations 5 and 6: keys and values of the heads h - N//2 .. h + N//2 and the positions i - M//2 .. i + M//2 go into one softmax; with
N = 1 it is the one-dimensional form. Each query's keys are sliced out and put in one row. Fewer heads than the area, shorter than the window."""
import sys
import numpy as np
from zoo import check, f64, softmax, uniform

SETS = dict(a.removeprefix("--set=").split("=") for a in sys.argv if a.startswith("--set="))
POSITIONS, HEADS = int(SETS.get("window", 11)) // 2, int(SETS.get("area", 3)) // 2


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    o = np.zeros(v.shape)
    for b, h, i in np.ndindex(*q.shape[:3]):
        area = (b, slice(max(h - HEADS, 0), h + HEADS + 1), slice(max(i - POSITIONS, 0), i + POSITIONS + 1))
        keys, values = k[area].reshape(-1, k.shape[3]), v[area].reshape(-1, v.shape[3])
        o[b, h, i] = softmax(keys @ q[b, h, i] / np.sqrt(q.shape[3])) @ values
    return {"o": o}


rng = np.random.default_rng(421)
cases = []
for b, h, n, e, f in [(2, 4, 17, 8, 5), (1, 3, 150, 4, 8), (1, 1, 1, 4, 4), (1, 1, 30, 5, 3), (1, 7, 4, 8, 8)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f)), None))
check("heads/csan-2d", oracle, cases)
