# RUN: %python %s heedc
"""Beltagy et al. 2020, section 3: dilated band and global keys for ordinary queries; global queries attend to all, own projections."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights, window=4):
    q, k, v, qg, kg, vg = f64(*(inputs[n] for n in ("q", "k", "v", "qg", "kg", "vg")))
    marks, dilation = inputs["global"], inputs["dilation"]
    b, h, n, e = q.shape
    out = np.zeros(q.shape)
    for bb in range(b):
        for hh in range(h):
            for i in range(n):
                if marks[bb, i]:
                    keys, qs, ks, vs = np.arange(n), qg, kg, vg
                else:
                    reach = i + np.arange(-window, window + 1) * dilation[hh]
                    keys = np.union1d(reach[(reach >= 0) & (reach < n)], np.flatnonzero(marks[bb]))
                    qs, ks, vs = q, k, v
                out[bb, hh, i] = softmax(ks[bb, hh, keys] @ qs[bb, hh, i] / np.sqrt(e)) @ vs[bb, hh, keys]
    return {"o": out}


rng = np.random.default_rng(8)
cases = []
for b, n, e, dilation in [(2, 30, 8, [1, 2, 3]), (1, 100, 16, [1, 1]), (1, 1, 4, [2])]:
    inputs = {name: uniform(rng, b, len(dilation), n, e) for name in ("q", "k", "v", "qg", "kg", "vg")}
    cases.append((inputs | {"global": rng.random((b, n)) < 0.1, "dilation": np.array(dilation, np.int32)}, None))
check("sparse/longformer", oracle, cases)
