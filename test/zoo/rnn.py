# RUN: %python %s heedc
# RUN: %python %s heedc --set=act=relu
"""Elman 1990; Xiao and Zhu 2023, section 5.5.2: z_i = f(z_(i-1) W_z + s_i W_s + b), f = tanh (by default) or a ReLU, in sentences of their own lengths."""
import sys

import numpy as np
from zoo import check, f64, uniform

RELU = any("act=relu" in a for a in sys.argv)


def oracle(inputs, weights):
    s, z = f64(inputs["s"], inputs["z"])
    wz, ws, bias = f64(*(weights[n] for n in ("weight_hh", "weight_ih", "bias")))
    y, last = np.zeros((*s.shape[:2], z.shape[1])), z.copy()
    for b, length in enumerate(inputs["length"]):
        for i in range(length):
            a = wz @ last[b] + ws @ s[b, i] + bias
            last[b] = y[b, i] = np.maximum(a, 0) if RELU else np.tanh(a)
    return {"y": y, "last": last}


rng = np.random.default_rng(401)
cases = []
for lengths, n, d, e in [([5, 3], 5, 4, 7), ([1], 1, 1, 1), ([0, 9, 4], 9, 20, 33), ([200], 200, 16, 16), ([0, 0], 0, 3, 2), (range(1, 18), 17, 5, 12)]:
    weights = {"weight_ih": uniform(rng, e, d), "weight_hh": uniform(rng, e, e) / np.float32(e), "bias": uniform(rng, e)}
    b = len(lengths)
    cases.append((dict(s=uniform(rng, b, n, d), z=uniform(rng, b, e), length=np.array(lengths, np.int32)), weights))
check("recurrence/rnn", oracle, cases)
