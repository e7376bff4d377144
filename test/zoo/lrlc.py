# RUN: %python %s heedc
"""Guo et al. 2019: softmax(Q_r K_r' / sqrt(r)) V of rank-r scores beside softmax over the band of Q K' / sqrt(d), joined by a projection. The rank of the
scores is asserted; each band row is sliced out. Sentences are padded, one is padding alone; the window may hold the whole sentence."""
import numpy as np
from zoo import check, linear, linear_weights, softmax, uniform

R, WINDOW = 2, 3


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    q, k, v = (linear(x, weights, "lowrank." + n) for n in ("query", "key", "value"))
    qb, kb, vb = (linear(x, weights, "band." + n) for n in ("query", "key", "value"))
    y = np.zeros(x.shape)
    for b, length in enumerate(inputs["length"]):
        scores = q[b] @ k[b, :length].T / np.sqrt(R)
        assert scores.size == 0 or np.linalg.matrix_rank(scores, 1e-9 * np.abs(scores).max()) <= R
        far = softmax(scores) @ v[b, :length]
        near = np.zeros(far.shape)
        for i in range(len(x[b])):
            keys = slice(max(i - WINDOW, 0), min(i + WINDOW + 1, length))
            if keys.start < keys.stop:
                near[i] = softmax(kb[b, keys] @ qb[b, i] / np.sqrt(x.shape[2])) @ vb[b, keys]
        y[b] = linear(np.hstack([far, near]), weights, "output")
    return {"y": y}


rng = np.random.default_rng(416)
cases = []
for lengths, n, d in [([9, 4, 0], 9, 6), ([140], 140, 8), ([1], 1, 4), ([3, 20], 33, 16)]:
    weights = linear_weights(rng, "output", d, 2 * d)
    for branch, width in (("lowrank.", R), ("band.", d)):
        for name, out in (("query", width), ("key", width), ("value", d)):
            weights |= linear_weights(rng, branch + name, out, d)
    cases.append((dict(x=uniform(rng, len(lengths), n, d), length=np.array(lengths, np.int32)), weights))
check("lowrank/lrlc", oracle, cases)
