# RUN: %python %s heedc
"""Shen et al. 2020, algorithm 2 in inference: gamma x / psi + beta, psi the running quadratic mean of each channel."""
import numpy as np
from zoo import check, uniform


def oracle(inputs, weights):
    z = inputs["x"].astype(np.float64)
    for c in range(z.shape[-1]):
        z[..., c] = z[..., c] * float(weights["weight"][c]) / float(weights["running_psi"][c]) + float(weights["bias"][c])
    return {"z": z}


rng = np.random.default_rng(415)
cases = []
for b, n, d in [(2, 9, 17), (1, 131, 8), (2, 1, 1), (1, 3, 300)]:
    weights = {"weight": uniform(rng, d), "bias": uniform(rng, d), "running_psi": np.abs(uniform(rng, d)) + np.float32(0.1)}
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("norm-residual/powernorm", oracle, cases)
