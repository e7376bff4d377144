# RUN: %python %s heedc
# RUN: %python %s heedc --set=layers=1
"""Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000: i, f, o = sigmoid(x W + h U + b), g = tanh(likewise), c = f c + i g,
h = o tanh(c); layers (2 by default) of it on sentences of their own lengths."""
import sys

import numpy as np
from zoo import check, f64, uniform

LAYERS = next((int(a.split("=")[-1]) for a in sys.argv if "layers=" in a), 2)
sigmoid = lambda x: 1 / (1 + np.exp(-x))


def oracle(inputs, weights):
    x, h, c = f64(*(inputs[n] for n in ("x", "h", "c")))
    for l in range(LAYERS):
        w, u, bias = f64(*(weights[f"layer.{l}.{n}"] for n in ("weight_ih", "weight_hh", "bias")))
        y = np.zeros((*x.shape[:2], h.shape[2]))
        for b, length in enumerate(inputs["length"]):
            for t in range(length):
                i, f, g, o = np.split(w @ x[b, t] + u @ h[l, b] + bias, 4)
                c[l, b] = sigmoid(f) * c[l, b] + sigmoid(i) * np.tanh(g)
                h[l, b] = y[b, t] = sigmoid(o) * np.tanh(c[l, b])
        x = y
    return {"y": x, "hs": h, "cs": c}


rng = np.random.default_rng(402)
cases = []
for lengths, n, d, e in [([5, 3], 5, 4, 7), ([1], 1, 1, 1), ([0, 9, 4], 9, 20, 33), ([150], 150, 16, 16), ([0, 0], 0, 3, 2)]:
    weights = {}
    for l in range(LAYERS):
        weights |= {f"layer.{l}.weight_ih": uniform(rng, 4 * e, e if l else d), f"layer.{l}.weight_hh": uniform(rng, 4 * e, e) / np.float32(e),
                    f"layer.{l}.bias": uniform(rng, 4 * e)}
    b = len(lengths)
    cases.append((dict(x=uniform(rng, b, n, d), h=uniform(rng, LAYERS, b, e), c=uniform(rng, LAYERS, b, e), length=np.array(lengths, np.int32)), weights))
check("recurrence/lstm", oracle, cases)
