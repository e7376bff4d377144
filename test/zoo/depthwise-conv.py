# RUN: %python %s heedc
# RUN: %python %s heedc --set=causal=true
"""Wu et al. 2018, section 2: O_{i,c} = sum_{j=1..k} W_{c,j} X_{i + j - ceil((k+1)/2), c}, positions from 1; `causal` ends the taps at i."""
import math
import sys

import numpy as np
from zoo import check, f64, uniform

CAUSAL = "--set=causal=true" in sys.argv


def oracle(inputs, weights):
    x, w = f64(inputs["x"], weights["weight"])
    b, n, channels = x.shape
    taps = w.shape[1]
    y = np.zeros(x.shape)
    for i in range(1, n + 1):
        for j in range(1, taps + 1):
            at = i + j - (taps if CAUSAL else math.ceil((taps + 1) / 2))
            if 1 <= at <= n:
                y[:, i - 1] += w[:, j - 1] * x[:, at - 1]
    return {"y": y}


rng = np.random.default_rng(602)
cases = []
for b, n, c, k in [(2, 9, 8, 3), (1, 140, 5, 7), (1, 5, 4, 12), (2, 6, 3, 1), (1, 1, 1, 3), (1, 11, 17, 4)]:
    cases.append((dict(x=uniform(rng, b, n, c)), {"weight": uniform(rng, c, k)}))
check("conv-hybrid/depthwise-conv", oracle, cases)
