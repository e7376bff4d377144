# RUN: %python %s heedc
"""Vaswani et al. 2017, section 3.2.3: no query sees a later key; grouped heads by repetition of the key heads."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    n, m = q.shape[2], k.shape[2]
    live = np.tri(n, m, m - n, dtype=bool)
    return {"o": softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), live) @ v}


rng = np.random.default_rng(2)
cases = []
for b, h, g, n, m, e, f in [(1, 1, 1, 1, 1, 4, 4), (2, 4, 2, 33, 33, 16, 16), (1, 6, 3, 7, 100, 24, 40), (1, 2, 1, 9, 5, 8, 8), (1, 2, 2, 200, 200, 64, 64)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, g, m, e), v=uniform(rng, b, g, m, f)), None))
check("core/causal-attention", oracle, cases)
