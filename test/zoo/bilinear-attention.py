# RUN: %python %s heedc
"""Luong et al. 2015, equations 5, 7 and 8: a_t(s) = softmax_s(h_t' W_a h_s), h~_t = tanh(W_c [c_t; h_t]). Sources are padded with NaN; one is empty."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    h, source = f64(inputs["h"], inputs["source"])
    wa, wc = f64(weights["attention.weight"], weights["output.weight"])
    y = np.zeros(h.shape)
    for b, length in enumerate(inputs["length"]):
        memory = source[b, :length]
        for t, state in enumerate(h[b]):
            context = softmax(memory @ (wa.T @ state)) @ memory
            y[b, t] = np.tanh(wc @ np.concatenate([context, state]))
    return {"y": y}


rng = np.random.default_rng(408)
cases = []
for lengths, n, m, d, c in [([9, 4, 0], 5, 9, 7, 6), ([150], 140, 150, 8, 4), ([1], 1, 1, 1, 1), ([20, 3], 6, 20, 16, 33)]:
    source = uniform(rng, len(lengths), m, c)
    for b, length in enumerate(lengths):
        source[b, length:] = np.nan
    weights = {"attention.weight": uniform(rng, d, c) * np.float32(c**-0.5), "output.weight": uniform(rng, d, c + d) * np.float32((c + d)**-0.5)}
    cases.append((dict(h=uniform(rng, len(lengths), n, d), source=source, length=np.array(lengths, np.int32)), weights))
check("score/bilinear-attention", oracle, cases)
