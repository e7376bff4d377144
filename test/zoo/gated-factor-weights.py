# RUN: %python %s heedc
"""Wang et al. 2020, equation 2: W = P diag(z) Q as one dense matrix. Where every gate outside of `kept` = 0, 2, 3 is closed the pruned form is the
same; in the last case open gates are left out."""
import numpy as np
from zoo import check, uniform


def oracle(inputs, w):
    P, z, Q = (w[n].astype(np.float64) for n in "PzQ")
    x = inputs["x"].astype(np.float64)
    kept = np.isin(np.arange(len(z)), [0, 2, 3])
    return {"gated": x @ (P @ np.diag(z) @ Q).T, "pruned": x @ (P @ np.diag(np.where(kept, z, 0)) @ Q).T}


rng = np.random.default_rng(619)
cases = []
for n, i, o, r, shut in [(7, 5, 9, 6, (1, 4, 5)), (1, 1, 1, 4, (1,)), (131, 33, 17, 5, (1, 4)), (3, 8, 8, 6, ())]:
    z = uniform(rng, r) + np.float32(1.5)
    z[list(shut)] = 0
    w = {"P": uniform(rng, o, r), "z": z, "Q": uniform(rng, r, i) * np.float32(i**-0.5)}
    cases.append((dict(x=uniform(rng, n, i)), w))
check("quantization/gated-factor-weights", oracle, cases)
