# RUN: %python %s heedc
"""Dai et al. 2020, section 2.2: h = LN(h' + Attn(Q = h', KV = h)) with h' = means of pairs at the head of a block; up-sampling repeats
each row four times and adds the first block's output; one decoder layer."""
import math

import numpy as np
from zoo import check, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def layer(x, context, weights, at):
    h = layer_norm(x + multi_head(x, context, weights, 2, at + "."), weights, at + ".norm1")
    return layer_norm(h + linear(gelu(linear(h, weights, at + ".up")), weights, at + ".down"), weights, at + ".norm2")


def pool(x):
    return np.stack([x[:, start:start + 2].mean(1) for start in range(0, x.shape[1], 2)], 1)


def oracle(inputs, weights):
    first = h = layer(*[inputs["x"].astype(np.float64)] * 2, weights, "block.0")
    for number in (1, 2):
        h = layer(pool(h), h, weights, f"block.{number}")
    g = first + np.repeat(h, 4, 1)[:, :first.shape[1]]
    return {"y": layer(g, g, weights, "decoder")}


rng = np.random.default_rng(348)
cases = []
for b, n, d in [(2, 13, 8), (1, 150, 8), (1, 8, 4), (1, 1, 4)]:
    weights = {}
    for at in ("block.0", "block.1", "block.2", "decoder"):
        for name in ("query", "key", "value", "output"):
            weights |= linear_weights(rng, f"{at}.{name}", d, d)
        weights |= linear_weights(rng, at + ".up", 32, d) | linear_weights(rng, at + ".down", d, 32)
        weights |= norm_weights(rng, at + ".norm1", d) | norm_weights(rng, at + ".norm2", d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("memory-compression/funnel", oracle, cases)
