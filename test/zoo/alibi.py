# RUN: %python %s heedc
"""Press et al. 2022, section 3: softmax(q_i K^T / sqrt(d) + m_h [-(i-1), .., -1, 0]), slopes a geometric series from 2^(-8/H)."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    h, n = q.shape[1:3]
    start = 2.0 ** (-8.0 / h)
    slopes = start ** np.arange(1, h + 1)
    bias = slopes[:, None, None] * (np.arange(n)[None, :] - np.arange(n)[:, None])
    return {"o": softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + bias, np.tri(n, dtype=bool)) @ v}


rng = np.random.default_rng(13)
cases = []
for b, h, n, e, f in [(1, 8, 50, 8, 8), (2, 2, 200, 32, 16), (1, 1, 1, 4, 4)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f)), None))
check("position/alibi", oracle, cases)
