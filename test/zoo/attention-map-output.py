# RUN: %python %s heedc
"""Vaswani et al. 2017, section 3.2.2: y = concat_h(A_h V_h) W_o with A_h = softmax(Q_h K_h' / sqrt(d_k)) as a result of its own; Xiao and Zhu 2023,
equation 61: d = 1 - A. Padded keys have weight 0 and distance 1; a sentence may be padding alone."""
import numpy as np
from zoo import attention_weights, check, linear, softmax, uniform


def oracle(inputs, weights):
    x, length, count = inputs["x"].astype(np.float64), inputs["length"], 4
    b, n, d = x.shape
    e = d // count
    q, k, v = (linear(x, weights, "attention." + name) for name in ("query", "key", "value"))
    A, o = np.zeros((b, count, n, n)), np.zeros(x.shape)
    for r, h in np.ndindex(b, count):
        part, real = slice(h * e, (h + 1) * e), length[r]
        A[r, h, :, :real] = softmax(q[r, :, part] @ k[r, :real, part].T / np.sqrt(e))
        o[r, :, part] = A[r, h] @ v[r, :, part]
    return {"y": linear(o, weights, "attention.output"), "A": A, "d": 1 - A}


rng = np.random.default_rng(402)
cases = []
for lengths, n, d in [([9, 4, 0], 9, 16), ([135, 70], 135, 8), ([1], 1, 12), ([3, 17], 17, 20)]:
    inputs = dict(x=uniform(rng, len(lengths), n, d), length=np.array(lengths, np.int32))
    cases.append((inputs, attention_weights(rng, "attention.", d)))
check("core/attention-map-output", oracle, cases)
