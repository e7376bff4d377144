# RUN: %python %s heedc
"""Xiao and Zhu 2023, section 5.5.2: z_i = a z_(i-1) + (1 - a) s_i with a = exp(-rate), and the mean of s_0 .. s_i. By steps, and written out as
weights over all earlier positions: both agree."""
import numpy as np
from zoo import check, f64, uniform


def oracle(inputs, weights):
    s, z, rate = f64(*(inputs[n] for n in ("s", "z", "rate")))
    a, n, start = np.exp(-rate), s.shape[1], z
    weighted, running = np.zeros(s.shape), np.zeros(s.shape)
    for i in range(n):
        z = weighted[:, i] = a * z + (1 - a) * s[:, i]
        running[:, i] = s[:, :i + 1].mean(1)
    away = np.arange(n)[:, None] - np.arange(n)
    w = np.where((away >= 0)[..., None], (1 - a) * a ** np.maximum(away, 0)[..., None], 0)
    whole = np.einsum("ijd,bjd->bid", w, s) + a ** (np.arange(n)[:, None] + 1) * start[:, None]
    mean = np.einsum("ij,bjd->bid", (away >= 0) / (np.arange(n)[:, None] + 1), s)
    assert np.allclose(weighted, whole, rtol=0, atol=1e-12) and np.allclose(running, mean, rtol=0, atol=1e-12)
    return {"weighted": weighted, "running": running, "last": z}


rng = np.random.default_rng(407)
cases = []
for b, n, d in [(2, 7, 12), (1, 1, 5), (3, 40, 33), (1, 300, 16), (2, 0, 4), (17, 131, 4)]:
    rate = np.abs(uniform(rng, d))
    # Decays of 1, e^-200 and 0, and a slow one.
    rate[:4] = [0, 200, np.inf, 0.01]
    cases.append((dict(s=uniform(rng, b, n, d), z=uniform(rng, b, d), rate=rate), None))
check("recurrence/moving-average-memory", oracle, cases)
