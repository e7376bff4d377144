# RUN: %python %s heedc
# RUN: %python %s heedc --set=f=tanh
# RUN: %python %s heedc --set=f=ffn
"""Xiao and Zhu 2023, equation 154: z_i = f(a z_(i-1) + b s_i), f = identity (by default), tanh or a feed-forward network. The linear one also as a sum
over all earlier steps: both agree."""
import sys

import numpy as np
from zoo import check, f64, feed_forward, feed_forward_weights, uniform

FORM = next((a.split("=")[-1] for a in sys.argv if "--set=f=" in a), "identity")


def oracle(inputs, weights):
    s, z, a, b = f64(*(inputs[n] for n in ("s", "z", "a", "b")))
    f = {"identity": lambda u: u, "tanh": np.tanh, "ffn": lambda u: feed_forward(u, weights, "f.")}[FORM]
    y, n, start = np.zeros(s.shape), s.shape[1], z
    for i in range(n):
        z = y[:, i] = f(a * z + b * s[:, i])
    if FORM == "identity":
        for i in range(n):
            whole = a ** (i + 1) * start + sum(a ** (i - j) * b * s[:, j] for j in range(i + 1))
            assert np.allclose(y[:, i], whole, rtol=0, atol=1e-12)
    return {"y": y, "last": z}


rng = np.random.default_rng(408)
cases = []
for batch, n, d in [(2, 7, 12), (1, 1, 5), (3, 40, 33), (1, 200, 16), (2, 0, 4), (17, 131, 4)]:
    a = uniform(rng, d)
    a[:4] = [0, 1, np.exp(-200.0), -0.99]
    weights = feed_forward_weights(rng, "f.", d, 24) if FORM == "ffn" else None
    if weights:  # smaller than 1 as a map, so that errors of a step die away
        weights["f.down.weight"] /= np.float32(np.sqrt(24))
    cases.append((dict(s=uniform(rng, batch, n, d), z=uniform(rng, batch, d), a=a, b=uniform(rng, d)), weights))
check("recurrence/linear-structured-recurrence", oracle, cases)
