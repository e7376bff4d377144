# RUN: %python %s heedc
"""Bengio et al. 2003; Mikolov et al. 2013: x_j = E[id_j]; zeros for the padding id, whose row (NaN here) is not read."""
import numpy as np
from zoo import check, uniform


def oracle(inputs, weights):
    table, ids = weights["embedding.weight"], inputs["id"]
    out = np.zeros(ids.shape + table.shape[1:])
    for place in np.ndindex(*ids.shape):
        if ids[place] != inputs["pad"]:
            out[place] = table[ids[place]]
    return {"x": out}


rng = np.random.default_rng(101)
cases = []
for b, n, v, d, pad in [(2, 7, 11, 5, 0), (1, 150, 37, 33, 36), (3, 1, 1, 4, 0), (2, 9, 6, 3, -1), (1, 4, 3, 2, 7)]:
    table = uniform(rng, v, d)
    ids = rng.integers(0, v, (b, n)).astype(np.int32)
    ids[rng.random((b, n)) < 0.3] = pad
    if 0 <= pad < v:
        table[pad] = np.nan
    cases.append((dict(id=ids, pad=pad), {"embedding.weight": table}))
check("core/embedding-lookup", oracle, cases)
