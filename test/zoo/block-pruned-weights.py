# RUN: %python %s heedc
"""Lagunas et al. 2021, section 3: the layer with dense matrices whose blocks that are not kept are zeros; also rows of blocks without any."""
import numpy as np
from zoo import check, uniform


def dense(w, at, columns):
    blocks, start = w[at + ".blocks"].astype(np.float64), w[at + ".start"]
    size = blocks.shape[1]
    W = np.zeros(((len(start) - 1) * size, columns))
    for r in range(len(start) - 1):
        for t in range(start[r], start[r + 1]):
            c = w[at + ".column"][t]
            W[r * size : (r + 1) * size, c * size : (c + 1) * size] = blocks[t]
    return W


def oracle(inputs, w):
    x = inputs["x"].astype(np.float64)
    u = np.maximum(x @ dense(w, "up", x.shape[1]).T + w["up.bias"], 0)
    return {"y": u @ dense(w, "down", len(w["up.bias"])).T + w["down.bias"]}


def prune(rng, at, rows, columns, size, keep):
    live = rng.random((rows, columns)) < keep
    live[0] = rows == 1  # the first of several rows has no block
    blocks = uniform(rng, live.sum(), size, size) * np.float32((max(columns * keep, 1) * size) ** -0.5)
    start = np.concatenate([[0], live.sum(1).cumsum()]).astype(np.int32)
    column = np.nonzero(live)[1].astype(np.int32)
    return {at + ".blocks": blocks, at + ".column": column, at + ".start": start, at + ".bias": uniform(rng, rows * size)}


rng = np.random.default_rng(618)
cases = []
for n, d, h, size, keep in [(7, 3, 5, 4, 0.5), (1, 1, 1, 1, 1), (131, 5, 9, 16, 0.3), (5, 4, 3, 2, 0)]:
    w = prune(rng, "up", h, d, size, keep) | prune(rng, "down", d, h, size, keep)
    cases.append((dict(x=uniform(rng, n, d * size)), w))
check("quantization/block-pruned-weights", oracle, cases)
