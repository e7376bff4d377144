# RUN: %python %s heedc
# RUN: %python %s heedc --set=causal=true
"""Chollet 2017, section 1: a convolution whose kernel is of rank one in (channel, tap) for each filter: W[f,c,t] = point[f,c] depth[c,t]. Built
as that full kernel and summed row by row; windows wider than the sequence, even widths, one tap."""
import sys

import numpy as np
from zoo import check, f64, uniform

CAUSAL = "--set=causal=true" in sys.argv


def oracle(inputs, weights):
    x, depth, point, bias = f64(inputs["x"], weights["depthwise.weight"], weights["pointwise.weight"], weights["pointwise.bias"])
    full = point * depth[:, 0]  # F x C x K
    (b, n, _), taps = x.shape, full.shape[2]
    y = np.zeros((b, n, len(full))) + bias
    for i in range(n):
        for t in range(taps):
            row = i - (taps - 1 if CAUSAL else taps // 2) + t
            if 0 <= row < n:
                y[:, i] += x[:, row] @ full[:, :, t].T
    return {"y": y}


rng = np.random.default_rng(612)
cases = []
for b, n, c, f, k in [(2, 19, 8, 6, 3), (1, 140, 5, 7, 4), (1, 5, 4, 4, 11), (2, 6, 3, 5, 1), (1, 1, 3, 2, 3), (1, 33, 17, 20, 6)]:
    weights = {"depthwise.weight": uniform(rng, c, 1, k), "pointwise.weight": uniform(rng, f, c, 1), "pointwise.bias": uniform(rng, f)}
    cases.append((dict(x=uniform(rng, b, n, c)), weights))
check("conv-hybrid/conv1d-separable", oracle, cases)
