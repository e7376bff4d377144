# RUN: %python %s heedc
"""Parmar et al. 2018, section 3.3: query blocks of 16 positions, each with a memory of itself and the 24 positions before; later ones masked."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights, lq=16, lm=24):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    parts = []
    for start in range(0, q.shape[2], lq):
        first = max(0, start - lm)
        qb, kb, vb = q[:, :, start:start + lq], k[:, :, first:start + lq], v[:, :, first:start + lq]
        live = np.tri(qb.shape[2], kb.shape[2], start - first, dtype=bool)
        parts.append(softmax(qb @ kb.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), live) @ vb)
    return {"o": np.concatenate(parts, 2)}


rng = np.random.default_rng(313)
cases = []
for b, h, n, e, f in [(2, 2, 61, 8, 5), (1, 1, 300, 16, 16), (1, 1, 16, 4, 4), (1, 1, 5, 4, 4), (1, 1, 1, 4, 6)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f)), None))
check("sparse/image-transformer-1d", oracle, cases)
