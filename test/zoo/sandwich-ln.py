# RUN: %python %s heedc
"""Ding et al. 2021, section 2.4: x + LN(F(LN(x))) around causal attention and a feed-forward layer with GELU, LN at the end. Attention by the
paper's PB-relax, softmax((Q K^T / (a sqrt(d)) - max) a) with a = 32, query by query."""
import math

import numpy as np
from zoo import attention_weights, check, feed_forward_weights, heads, layer_norm, linear, merge, norm_weights, uniform


def relaxed(x, weights, at, a=32):
    q, k, v = (heads(linear(x, weights, at + name), 4) for name in ("query", "key", "value"))
    out = np.zeros(q.shape)
    for b, h, i in np.ndindex(*q.shape[:3]):
        s = k[b, h, : i + 1] @ q[b, h, i] / (a * math.sqrt(q.shape[3]))
        e = np.exp((s - s.max()) * a)
        out[b, h, i] = e @ v[b, h, : i + 1] / e.sum()
    return linear(merge(out), weights, at + "output")


def ffn(x, weights, at):
    u = linear(x, weights, at + "up")
    return linear(u * (1 + np.vectorize(math.erf)(u / math.sqrt(2))) / 2, weights, at + "down")


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    for at in ("layer.0.", "layer.1."):
        x = x + layer_norm(relaxed(layer_norm(x, weights, at + "norm1"), weights, at), weights, at + "norm2")
        x = x + layer_norm(ffn(layer_norm(x, weights, at + "norm3"), weights, at), weights, at + "norm4")
    return {"y": layer_norm(x, weights, "norm")}


rng = np.random.default_rng(502)
cases = []
for b, n, d in [(2, 9, 16), (1, 133, 8), (3, 1, 12)]:
    weights = norm_weights(rng, "norm", d)
    for at in ("layer.0.", "layer.1."):
        weights |= attention_weights(rng, at, d) | feed_forward_weights(rng, at, d, 64)
        for k in (1, 2, 3, 4):
            weights |= norm_weights(rng, f"{at}norm{k}", d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("norm-residual/sandwich-ln", oracle, cases)
