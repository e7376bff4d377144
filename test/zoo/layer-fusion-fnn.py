# RUN: %python %s heedc
"""Xiao and Zhu 2023, table 3: FFN([h^1, h^2, h^3]); the first linear as the sum of its three column blocks, one for each layer."""
import numpy as np
from layers import encoder_layer, layer_weights
from zoo import check, linear, linear_weights, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    d = x.shape[-1]
    inner = weights["fusion.up.bias"].astype(np.float64)
    for l in range(3):
        x = encoder_layer(x, weights, f"layer.{l}")
        inner = inner + x @ weights["fusion.up.weight"][:, l * d : (l + 1) * d].astype(np.float64).T
    return {"g": linear(np.maximum(inner, 0), weights, "fusion.down")}


rng = np.random.default_rng(303)
cases = []
for b, n, d in [(2, 7, 12), (1, 1, 4), (1, 150, 8)]:
    weights = {k: w for l in range(3) for k, w in layer_weights(rng, f"layer.{l}", d).items()}
    weights |= linear_weights(rng, "fusion.up", 64, 3 * d) | linear_weights(rng, "fusion.down", d, 64)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("depth/layer-fusion-fnn", oracle, cases)
