# RUN: %python %s heedc
"""Xiao and Zhu 2023, section 2.7, without pads: each sequence by itself; also with the sequences' tokens shuffled."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    out = np.zeros(v.shape)
    for sequence in set(inputs["seg"].tolist()):
        own = np.flatnonzero(inputs["seg"] == sequence)
        out[:, own] = softmax(q[:, own] @ k[:, own].swapaxes(-1, -2) / q.shape[-1] ** 0.5) @ v[:, own]
    return {"o": out}


rng = np.random.default_rng(104)
cases = []
for lengths, h, e, f in [([3, 4, 1], 2, 8, 4), ([1], 1, 4, 4), ([0, 70, 0, 3, 90, 1], 2, 5, 7), ([200], 1, 8, 8), ([1] * 40, 1, 3, 2)]:
    t = sum(lengths)
    for mixed in (False, True):
        seg = np.repeat(np.arange(len(lengths)), lengths).astype(np.int32)
        if mixed:
            seg = rng.permutation(seg)
        cases.append((dict(q=uniform(rng, h, t, e), k=uniform(rng, h, t, e), v=uniform(rng, h, t, f), seg=seg), None))
check("core/varlen-packed-attention", oracle, cases)
