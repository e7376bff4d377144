# RUN: %python %s heedc
# RUN: %python %s heedc --set=causal=true
"""Wang et al. 2022, section 2.1: x + f_out(LN(f_in(LN(x)))); f_in is the projections and the attention, or W_1 and GELU, f_out the output projection.
Sentence by sentence, head by head."""
import math
import sys

import numpy as np
from zoo import attention_weights, check, feed_forward_weights, layer_norm, linear, norm_weights, softmax, uniform

CAUSAL = "--set=causal=true" in sys.argv


def attend(x, weights, at):
    q, k, v = (np.split(linear(x, weights, at + name), 4, 1) for name in ("query", "key", "value"))
    live = np.tri(len(x), dtype=bool) if CAUSAL else None
    return np.concatenate([softmax(a @ b.T / math.sqrt(a.shape[1]), live) @ c for a, b, c in zip(q, k, v)], 1)


def hidden(x, weights, at):
    u = linear(x, weights, at + "up")
    return u * (1 + np.vectorize(math.erf)(u / math.sqrt(2))) / 2


def oracle(inputs, weights):
    out = []
    for x in inputs["x"].astype(np.float64):
        for at in ("layer.0.", "layer.1."):
            for number, f_in, f_out in ((1, attend, "output"), (2, hidden, "down")):
                inner = layer_norm(f_in(layer_norm(x, weights, f"{at}norm{number}"), weights, at), weights, f"{at}inner_norm{number}")
                x = x + linear(inner, weights, at + f_out)
        out.append(x)
    return {"y": np.stack(out)}


rng = np.random.default_rng(503)
cases = []
for b, n, d in [(2, 9, 16), (1, 133, 8), (3, 1, 12)]:
    weights = {}
    for at in ("layer.0.", "layer.1."):
        weights |= attention_weights(rng, at, d) | feed_forward_weights(rng, at, d, 64)
        for name, size in (("norm1", d), ("norm2", d), ("inner_norm1", d), ("inner_norm2", 64)):
            weights |= norm_weights(rng, at + name, size)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("norm-residual/sub-ln", oracle, cases)
