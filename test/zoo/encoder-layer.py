# RUN: %python %s heedc
"""Vaswani et al. 2017: LayerNorm(x + Sublayer(x)) around self-attention and around max(0, x W1 + b1) W2 + b2."""
import numpy as np
from zoo import check, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    h = layer_norm(x + multi_head(x, x, weights, 4, "attention."), weights, "norm1")
    f = linear(np.maximum(linear(h, weights, "ffn.up"), 0), weights, "ffn.down")
    return {"y": layer_norm(h + f, weights, "norm2")}


rng = np.random.default_rng(6)
cases = []
for b, n, d in [(2, 9, 16), (1, 64, 64), (1, 1, 8)]:
    weights = linear_weights(rng, "ffn.up", 64, d) | linear_weights(rng, "ffn.down", d, 64)
    for name in ("query", "key", "value", "output"):
        weights |= linear_weights(rng, "attention." + name, d, d)
    weights |= norm_weights(rng, "norm1", d) | norm_weights(rng, "norm2", d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("core/encoder-layer", oracle, cases)
