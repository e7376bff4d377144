# RUN: %python %s heedc
"""Xiao and Zhu 2023, equations 64 and 66 (Yang et al. 2018): softmax(Q K^T / sqrt(d) - gamma G) V, G(i, j) = (i - j)^2 / (2 sigma_i^2)."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v, sigma = f64(inputs["q"], inputs["k"], inputs["v"], inputs["sigma"])
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    for i in range(q.shape[2]):
        for j in range(q.shape[2]):
            s[:, :, i, j] -= (inputs.get("gamma", 1) * (i - j) ** 2 / (2 * sigma[:, i] ** 2))[:, None]
    return {"o": softmax(s) @ v}


rng = np.random.default_rng(206)
cases = []
for b, h, n, e, f, width in [(1, 2, 150, 8, 8, 5), (2, 1, 135, 4, 4, 200), (2, 3, 19, 16, 5, 1), (1, 1, 1, 4, 4, 1)]:
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f))
    inputs["sigma"] = np.float32(width) * (uniform(rng, b, n) + np.float32(1.5))
    cases += [(inputs, None), (inputs | dict(gamma=0.25), None)]
check("prior/gaussian-window-penalty", oracle, cases)
