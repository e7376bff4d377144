# RUN: %python %s heedc
# RUN: %python %s heedc --set=causal=true
"""Xiao and Zhu 2023, equation 153: y_i = sum of x_{i-K/2} .. x_{i-K/2+K-1} times W, over zeros outside; as np.convolve, channel by
channel. Windows wider than the sequence, even widths, width 1 (a linear layer)."""
import sys

import numpy as np
from zoo import check, f64, uniform

CAUSAL = "--set=causal=true" in sys.argv


def oracle(inputs, weights):
    x, w, bias = f64(inputs["x"], weights["weight"], weights["bias"])
    (b, n, channels), (filters, _, taps) = x.shape, w.shape
    before = taps - 1 if CAUSAL else taps // 2
    y = np.zeros((b, n, filters)) + bias
    for bb, f, c in np.ndindex(b, filters, channels):
        full = np.convolve(x[bb, :, c], w[f, c, ::-1])  # full[m] = sum_t x[m - taps + 1 + t] w[t]
        first = taps - 1 - before
        y[bb, :, f] += full[first:first + n]
    return {"y": y}


rng = np.random.default_rng(601)
cases = []
for b, n, c, f, k in [(2, 9, 8, 6, 3), (1, 140, 5, 7, 4), (1, 5, 4, 4, 11), (2, 6, 3, 5, 1), (1, 1, 3, 2, 3)]:
    weights = {"weight": uniform(rng, f, c, k), "bias": uniform(rng, f)}
    cases.append((dict(x=uniform(rng, b, n, c)), weights))
check("conv-hybrid/conv1d-sublayer", oracle, cases)
