# RUN: %python %s heedc
# RUN: %python %s heedc --set=ffn_layers=1 --set=kinds=1
"""Xiao and Zhu 2023, equation 52 with the sinusoids of 14 and 15: FFN_embed(x_j, e(tag 1), .., e(tag k)) + PE(j), word by word."""
import sys

import numpy as np
from zoo import check, linear, linear_weights, uniform

LAYERS, KINDS = (1, 1) if "--set=kinds=1" in sys.argv else (2, 3)


def oracle(inputs, weights):
    ids, tags = inputs["ids"], inputs["tags"]
    d = weights["word"].shape[1]
    out = np.zeros(ids.shape + (d,))
    for b, n in np.ndindex(*ids.shape):
        u = np.concatenate([weights["word"][ids[b, n]]] + [weights[f"tag.{k}"][tags[b, n, k]] for k in range(KINDS)]).astype(np.float64)
        if LAYERS == 2:
            u = np.maximum(linear(u, weights, "ffn.up"), 0)
        angles = n / 10000.0 ** (np.arange(0, d, 2) / d)
        out[b, n] = linear(u, weights, "ffn.down") + np.stack([np.sin(angles), np.cos(angles)], 1).ravel()[:d]
    return {"e": out}


rng = np.random.default_rng(521)
cases = []
for b, n, d, words, sizes in [(2, 7, 5, 11, (4, 9, 2)), (1, 1, 8, 3, (1, 1, 1)), (1, 150, 4, 40, (17, 5, 30)), (2, 0, 4, 3, (2, 2, 2))]:
    sizes = sizes[:KINDS]
    into = d * (1 + KINDS)
    weights = {"word": uniform(rng, words, d)} | {f"tag.{k}": uniform(rng, s, d) for k, s in enumerate(sizes)}
    weights |= linear_weights(rng, "ffn.up", 64, into) if LAYERS == 2 else {}
    weights |= linear_weights(rng, "ffn.down", d, 64 if LAYERS == 2 else into)
    tags = np.stack([rng.integers(0, s, (b, n)) for s in sizes], -1).astype(np.int32)
    cases.append((dict(ids=rng.integers(0, words, (b, n)).astype(np.int32), tags=tags), weights))
check("syntax/tag-embedding-ffn", oracle, cases)
