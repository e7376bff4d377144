# RUN: %python %s heedc
# RUN: %python %s heedc --set=pool=max
# RUN: %python %s heedc --set=pool=first
# RUN: %python %s heedc --set=pool=token
"""Devlin et al. 2019, section 4; Xiao and Zhu 2023, section 6.2: softmax(pool(H) W), each sentence without its padding (NaN here).
A sentence without a token pools to zeros."""
import sys

import numpy as np
from zoo import check, softmax, uniform

POOL = next((a.split("=")[-1] for a in sys.argv if "pool=" in a), "mean")


def oracle(inputs, weights):
    w = weights["classifier.weight"].astype(np.float64)
    rows = []
    for h, length in zip(inputs["h"].astype(np.float64), inputs["length"]):
        if POOL == "token":
            rows.append(h)
        elif POOL == "first":
            rows.append(h[0])
        else:
            rows.append(getattr(h[:length], POOL)(0) if length else np.zeros(h.shape[1]))
    return {"p": softmax(np.array(rows) @ w)}


rng = np.random.default_rng(107)
cases = []
for lengths, n, d, c in [([7, 3, 0, 1], 7, 5, 3), ([1], 1, 1, 1), ([140, 131], 150, 12, 2), ([2], 9, 33, 130)]:
    h = uniform(rng, len(lengths), n, d)
    if POOL != "token":
        for b, length in enumerate(lengths):
            h[b, max(length, 1):] = np.nan
    cases.append((dict(h=h, length=np.array(lengths, np.int32)), {"classifier.weight": uniform(rng, d, c)}))
check("core/sentence-classifier", oracle, cases)
