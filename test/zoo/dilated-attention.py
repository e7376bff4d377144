# RUN: %python %s heedc
"""Beltagy et al. 2020, section 3.1: query i attends i + gap t for t = -w .. w, as far as the sequence goes (w = 4, gap = 3)."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights, window=4, gap=3):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    n = q.shape[2]
    out = np.zeros(q.shape[:3] + v.shape[3:])
    for i in range(n):
        keys = [i + gap * t for t in range(-window, window + 1) if 0 <= i + gap * t < n]
        s = np.einsum("bhe,bhje->bhj", q[:, :, i], k[:, :, keys]) / np.sqrt(q.shape[-1])
        out[:, :, i] = np.einsum("bhj,bhjf->bhf", softmax(s), v[:, :, keys])
    return {"o": out}


rng = np.random.default_rng(304)
cases = []
for b, h, n, e, f in [(2, 2, 41, 8, 5), (1, 1, 300, 16, 16), (1, 1, 7, 4, 4), (1, 1, 1, 4, 6)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f)), None))
check("sparse/dilated-attention", oracle, cases)
