# RUN: %python %s heedc
"""Huang et al. 2019, section 3.4: softmax((Q K^T + Skew(Q E_r^T)) / sqrt(d)) V under the causal mask.

Skew as the paper does it: pad a column on the left, reshape to (L + 1) x L, drop the first row. Of a longer E_r the last rows serve.
"""
import numpy as np
from zoo import check, f64, softmax, uniform


def skew(x):
    b, h, n, _ = x.shape
    padded = np.concatenate([np.zeros((b, h, n, 1)), x], -1)
    return padded.reshape(b, h, n + 1, n)[:, :, 1:]


def oracle(inputs, weights):
    q, k, v, er = f64(*(inputs[n] for n in ("q", "k", "v", "er")))
    n = q.shape[2]
    relative = skew(q @ er[:, er.shape[1] - n :].swapaxes(-1, -2))
    return {"o": softmax((q @ k.swapaxes(-1, -2) + relative) / np.sqrt(q.shape[-1]), np.tri(n, dtype=bool)) @ v}


rng = np.random.default_rng(106)
cases = []
for b, h, n, e, f, rows in [(1, 2, 150, 8, 8, 150), (2, 3, 37, 16, 4, 64), (1, 1, 1, 4, 4, 1), (2, 1, 1, 4, 3, 5)]:
    q, k, v = uniform(rng, b, h, n, e), uniform(rng, b, h, n, e), uniform(rng, b, h, n, f)
    cases.append((dict(q=q, k=k, v=v, er=uniform(rng, h, rows, e)), None))
check("position/music-transformer", oracle, cases)
