# RUN: %python %s heedc
"""Wang et al. 2021: PE(t) has sin(omega_k t) in channel 2k and cos(omega_k t) in channel 2k + 1, omega learned."""
import numpy as np
from zoo import check, uniform


def oracle(inputs, weights):
    x, omega = inputs["x"].astype(np.float64), weights["omega"].astype(np.float64)
    y = x.copy()
    for t in range(x.shape[1]):
        for k, w in enumerate(omega):
            y[:, t, 2 * k] += np.sin(w * t)
            y[:, t, 2 * k + 1] += np.cos(w * t)
    return {"y": y}


rng = np.random.default_rng(103)
cases = []
for b, n, d in [(2, 150, 16), (1, 33, 6), (1, 1, 2), (3, 5, 34)]:
    cases.append((dict(x=uniform(rng, b, n, d)), {"omega": uniform(rng, d // 2) * np.float32(0.5)}))
check("position/pe-learned-sinusoid", oracle, cases)
