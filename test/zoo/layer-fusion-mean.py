# RUN: %python %s heedc
"""Xiao and Zhu 2023, table 3: (1/L) sum_l h^l over the outputs of three encoder layers."""
import numpy as np
from layers import encoder_layer, layer_weights
from zoo import check, uniform


def oracle(inputs, weights):
    x, total = inputs["x"].astype(np.float64), 0
    for l in range(3):
        x = encoder_layer(x, weights, f"layer.{l}")
        total = total + x
    return {"g": total / 3}


rng = np.random.default_rng(301)
cases = []
for b, n, d in [(2, 7, 12), (1, 1, 4), (1, 150, 8)]:
    weights = {k: w for l in range(3) for k, w in layer_weights(rng, f"layer.{l}", d).items()}
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("depth/layer-fusion-mean", oracle, cases)
