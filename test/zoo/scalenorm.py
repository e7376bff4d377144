# RUN: %python %s heedc
"""Nguyen and Salazar 2019: g x / ||x||, the norm not below eps = 1e-5. A row of zeros stays zeros; the scale of a row is lost."""
import numpy as np
from zoo import check, uniform


def oracle(inputs, weights, eps=1e-5):
    x = inputs["x"].astype(np.float64)
    return {"y": float(weights["scale"]) * x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), eps)}


rng = np.random.default_rng(412)
cases = []
for b, n, d in [(2, 9, 17), (1, 131, 8), (2, 1, 1), (1, 3, 300)]:
    x = uniform(rng, b, n, d)
    x[0, 0] = 0
    x[-1, -1] *= np.float32(1e-7)
    cases.append((dict(x=x), {"scale": np.array(rng.uniform(1, 5), np.float32)}))
check("norm-residual/scalenorm", oracle, cases)
