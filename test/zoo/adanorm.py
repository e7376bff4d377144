# RUN: %python %s heedc
# RUN: %python %s heedc --set=C=2.5 --set=k=0.3
"""Xu et al. 2019, section 4: z = C (1 - k y) y, y = (x - mu) / sigma (sigma + 1e-5 here), C = 1 and k = 1/10 unless given."""
import sys

import numpy as np
from zoo import check, uniform

SETS = dict(a.removeprefix("--set=").split("=") for a in sys.argv if a.startswith("--set="))
C, K = float(SETS.get("C", 1)), float(SETS.get("k", 0.1))


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    y = (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-5)
    return {"z": C * y - C * K * y * y}


rng = np.random.default_rng(413)
cases = []
for b, n, d in [(2, 9, 17), (1, 131, 8), (2, 1, 1), (1, 3, 300)]:
    x = uniform(rng, b, n, d)
    x[0, 0] = 0.25
    cases.append((dict(x=x), None))
check("norm-residual/adanorm", oracle, cases)
