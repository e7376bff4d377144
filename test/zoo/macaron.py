# RUN: %python %s heedc
"""Lu et al. 2020: half a feed-forward step, attention, half a feed-forward step, each with residual and post-norm; two layers."""
import numpy as np
from zoo import attention_weights, check, feed_forward, feed_forward_weights, layer_norm, multi_head, norm_weights, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    for at in ("layer.0.", "layer.1."):
        x = layer_norm(x + feed_forward(x, weights, at + "first.") / 2, weights, at + "norm1")
        x = layer_norm(x + multi_head(x, x, weights, 4, at), weights, at + "norm2")
        x = layer_norm(x + feed_forward(x, weights, at + "second.") / 2, weights, at + "norm3")
    return {"y": x}


rng = np.random.default_rng(408)
cases = []
for b, n, d in [(2, 9, 16), (1, 131, 8), (3, 1, 12)]:
    weights = {}
    for at in ("layer.0.", "layer.1."):
        weights |= attention_weights(rng, at, d)
        weights |= feed_forward_weights(rng, at + "first.", d, 64) | feed_forward_weights(rng, at + "second.", d, 64)
        for norm in ("norm1", "norm2", "norm3"):
            weights |= norm_weights(rng, at + norm, d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("norm-residual/macaron", oracle, cases)
