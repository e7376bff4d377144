# RUN: %python %s heedc
"""Likhomanenko et al. 2021, section 3: x + E(lambda (t - mean t + delta)), E(p) = sin(w_k p), cos(w_k p), w_k = 10000^(-2k/d); t in seconds, not evenly
spaced. The mean is that of the real tokens."""
import numpy as np
from zoo import check, f64, uniform


def oracle(inputs, weights):
    x, t = f64(inputs["x"], inputs["t"])
    delta, scale = inputs.get("delta", 0.0), inputs.get("lambda", 1.0)
    y = x.copy()
    for b, length in enumerate(inputs["length"]):
        center = np.mean(t[b, :length]) if length else 0.0
        for n in range(x.shape[1]):
            p = scale * (t[b, n] - center + delta)
            for d in range(x.shape[2]):
                w = np.exp(-np.log(10000) * 2 * (d // 2) / x.shape[2])
                y[b, n, d] += np.imag(np.exp(1j * w * p) * (1, 1j)[d % 2])
    return {"y": y}


rng = np.random.default_rng(405)
cases = []
for lengths, n, d in [([9, 4, 0], 9, 7), ([140, 1], 140, 6), ([1], 1, 1), ([33], 40, 16)]:
    t = np.cumsum(rng.uniform(0, 0.06, (len(lengths), n)), 1).astype(np.float32) + np.float32(2)
    inputs = dict(x=uniform(rng, len(lengths), n, d), t=t, length=np.array(lengths, np.int32))
    cases += [(inputs, None), (inputs | {"delta": 1.25, "lambda": 1.125}, None)]
check("position/cape", oracle, cases)
