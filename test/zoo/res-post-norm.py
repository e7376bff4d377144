# RUN: %python %s heedc
"""Xiao and Zhu 2023, equations 36 and 78 as printed: H_out = LNorm(F(H_in)) + H_in; two layers."""
import numpy as np
from zoo import check, encoder_weights, feed_forward, layer_norm, multi_head, uniform


def oracle(inputs, weights):
    h = inputs["x"].astype(np.float64)
    for l in range(2):
        at = f"layer.{l}."
        for sublayer, norm in ((lambda z: multi_head(z, z, weights, 4, at), "norm1"), (lambda z: feed_forward(z, weights, at), "norm2")):
            h = layer_norm(sublayer(h), weights, at + norm) + h
    return {"y": h}


rng = np.random.default_rng(402)
cases = [(dict(x=uniform(rng, b, n, d)), encoder_weights(rng, 2, d)) for b, n, d in [(2, 11, 16), (1, 131, 8), (3, 1, 12)]]
check("norm-residual/res-post-norm", oracle, cases)
