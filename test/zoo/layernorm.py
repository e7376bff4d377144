# RUN: %python %s heedc
# RUN: %python %s heedc --set=inside=false
"""Ba et al. 2016, equations 3 and 4: g (h - mu) / sigma + b, with sqrt(sigma^2 + eps), or sigma + eps (Xiao and Zhu 2023, equation 32).
A constant row gives b; a shift of the row changes nothing."""
import sys

import numpy as np
from zoo import check, f64, uniform

INSIDE = "--set=inside=false" not in sys.argv


def oracle(inputs, weights, eps=1e-5):
    h, g, b = f64(inputs["h"], weights["weight"], weights["bias"])
    spread = h.std(-1, keepdims=True)
    return {"y": g * (h - h.mean(-1, keepdims=True)) / (np.hypot(spread, np.sqrt(eps)) if INSIDE else spread + eps) + b}


rng = np.random.default_rng(410)
cases = []
for b, n, d, shift in [(2, 9, 17, 0), (1, 131, 8, 3), (2, 1, 1, 0), (1, 3, 300, 0)]:
    h = uniform(rng, b, n, d) + np.float32(shift)
    h[0, 0] = 0.5
    cases.append((dict(h=h), {"weight": uniform(rng, d), "bias": uniform(rng, d)}))
check("norm-residual/layernorm", oracle, cases)
