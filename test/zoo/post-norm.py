# RUN: %python %s heedc
"""Vaswani et al. 2017, section 3.1: each sublayer's output is LayerNorm(x + Sublayer(x)); two layers."""
import numpy as np
from zoo import check, encoder_weights, feed_forward, layer_norm, multi_head, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    for at in ("layer.0.", "layer.1."):
        x = layer_norm(x + multi_head(x, x, weights, 4, at), weights, at + "norm1")
        x = layer_norm(x + feed_forward(x, weights, at), weights, at + "norm2")
    return {"y": x}


rng = np.random.default_rng(401)
cases = [(dict(x=uniform(rng, b, n, d)), encoder_weights(rng, 2, d)) for b, n, d in [(2, 9, 16), (1, 131, 8), (3, 1, 12)]]
check("norm-residual/post-norm", oracle, cases)
