# RUN: %python %s heedc
"""Cho et al. 2014, section 2.3, with z as the share of the new (Chung et al. 2014): r, z = sigmoid(x W + h U + b), n = tanh(x W + (r h) U + b),
h = (1 - z) h + z n, in sentences of their own lengths."""
import numpy as np
from zoo import check, f64, uniform

sigmoid = lambda x: 1 / (1 + np.exp(-x))


def oracle(inputs, weights):
    x, last = f64(inputs["x"], inputs["h"])
    wr, wz, wn = np.split(weights["gru.weight_ih"].astype(np.float64), 3)
    ur, uz, un = np.split(weights["gru.weight_hh"].astype(np.float64), 3)
    br, bz, bn = np.split(weights["gru.bias"].astype(np.float64), 3)
    y = np.zeros((*x.shape[:2], last.shape[1]))
    for b, length in enumerate(inputs["length"]):
        h = last[b]
        for t in range(length):
            r = sigmoid(wr @ x[b, t] + ur @ h + br)
            z = sigmoid(wz @ x[b, t] + uz @ h + bz)
            n = np.tanh(wn @ x[b, t] + un @ (r * h) + bn)
            h = y[b, t] = (1 - z) * h + z * n
        last[b] = h
    return {"y": y, "last": last}


rng = np.random.default_rng(403)
cases = []
for lengths, n, d, e in [([5, 3], 5, 4, 7), ([1], 1, 1, 1), ([0, 9, 4], 9, 20, 33), ([150], 150, 16, 16), ([0, 0], 0, 3, 2)]:
    weights = {"gru.weight_ih": uniform(rng, 3 * e, d), "gru.weight_hh": uniform(rng, 3 * e, e) / np.float32(e), "gru.bias": uniform(rng, 3 * e)}
    b = len(lengths)
    cases.append((dict(x=uniform(rng, b, n, d), h=uniform(rng, b, e), length=np.array(lengths, np.int32)), weights))
check("recurrence/gru", oracle, cases)
