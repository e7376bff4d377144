# RUN: %python %s heedc
# RUN: %python %s heedc --set=nu=3
"""Schlag et al. 2021, section 5.3: phi_{i + 2 D (j - 1)}(x) = r_i r_{i + j}, r = relu([x, -x]), i = 1 .. 2 D (wrapping), j = 1 .. nu; 1e-3 is
added to the denominator, for a query that shares no feature with any key (always so for D = 1 and nu = 1)."""
import sys

import numpy as np
from zoo import check, f64, uniform

NU = next((int(a.split("=")[-1]) for a in sys.argv if "nu=" in a), 2)


def phi(x):
    r = np.maximum(np.concatenate([x, -x], -1), 0)
    return np.concatenate([r * np.roll(r, -j, -1) for j in range(1, NU + 1)], -1)


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    q, k = phi(q), phi(k)
    return {"o": q @ (k.swapaxes(-1, -2) @ v) / (q @ k.sum(2)[..., None] + 1e-3)}


rng = np.random.default_rng(326)
cases = []
for b, h, n, m, d, f in [(2, 3, 17, 23, 5, 4), (1, 1, 150, 140, 8, 8), (1, 1, 1, 1, 4, 4), (1, 1, 3, 2, 1, 2)]:
    cases.append((dict(q=uniform(rng, b, h, n, d), k=uniform(rng, b, h, m, d), v=uniform(rng, b, h, m, f)), None))
check("linear/dpfp", oracle, cases)
