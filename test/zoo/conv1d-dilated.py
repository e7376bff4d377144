# RUN: %python %s heedc
# RUN: %python %s heedc --set=causal=true --set=dilation=5
# RUN: %python %s heedc --set=dilation=1
"""Vaswani et al. 2017, section 4, and Yu and Koltun 2016, equation 2: (F *_l k)(p) = sum of F(s) k(t) over s + l t = p; as an ordinary
convolution (np.convolve) with a kernel that has dilation - 1 zeros between its taps. Windows wider than the sequence; one tap."""
import sys

import numpy as np
from zoo import check, f64, uniform

SETS = dict(a.removeprefix("--set=").split("=") for a in sys.argv if a.startswith("--set="))
DILATION, CAUSAL = int(SETS.get("dilation", 2)), SETS.get("causal") == "true"


def oracle(inputs, weights):
    x, w, bias = f64(inputs["x"], weights["weight"], weights["bias"])
    (b, n, channels), (filters, _, taps) = x.shape, w.shape
    wide = np.zeros((filters, channels, (taps - 1) * DILATION + 1))
    wide[:, :, ::DILATION] = w
    after = 0 if CAUSAL else (taps - 1 - taps // 2) * DILATION  # rows of the window behind row i
    y = np.zeros((b, n, filters)) + bias
    for bb, f, c in np.ndindex(b, filters, channels):
        y[bb, :, f] += np.convolve(x[bb, :, c], wide[f, c, ::-1])[after : after + n]
    return {"y": y}


rng = np.random.default_rng(611)
cases = []
for b, n, c, f, k in [(2, 19, 8, 6, 3), (1, 140, 5, 7, 4), (1, 5, 4, 4, 11), (2, 6, 3, 5, 1), (1, 1, 3, 2, 3)]:
    cases.append((dict(x=uniform(rng, b, n, c)), {"weight": uniform(rng, f, c, k), "bias": uniform(rng, f)}))
check("conv-hybrid/conv1d-dilated", oracle, cases)
