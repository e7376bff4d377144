# RUN: %python %s heedc
"""Xiao and Zhu 2023, section 5.8: a convolution of width 2 and stride 2, each sentence by itself with a zero behind an odd length. Padding
holds NaN, which must not show; one sentence is padding alone."""
import numpy as np
from zoo import check, uniform


def oracle(inputs, weights):
    x, w = inputs["x"].astype(np.float64), weights["weight"].astype(np.float64)
    out = np.zeros((len(x), (x.shape[1] + 1) // 2, len(w)))
    for b, length in enumerate(inputs["length"]):
        rows = x[b, :length]
        if length % 2:
            rows = np.concatenate([rows, np.zeros((1, x.shape[2]))])
        out[b, :len(rows) // 2] = rows[0::2] @ w[:, :, 0].T + rows[1::2] @ w[:, :, 1].T + weights["bias"]
    return {"y": out, "lengths": (inputs["length"] + 1) // 2}


rng = np.random.default_rng(347)
cases = []
for lengths, m, i, o in [([9, 4, 0, 1], 9, 5, 7), ([300, 171], 300, 8, 8), ([1], 1, 3, 3), ([2], 2, 3, 3)]:
    x = uniform(rng, len(lengths), m, i)
    for b, length in enumerate(lengths):
        x[b, length:] = np.nan
    cases.append((dict(x=x, length=np.array(lengths, np.int32)), {"weight": uniform(rng, o, i, 2), "bias": uniform(rng, o)}))
check("memory-compression/strided-conv-downsampling", oracle, cases)
