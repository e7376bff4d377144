# RUN: %python %s heedc
# RUN: %python %s heedc --set=normalise=false
"""Xiao and Zhu 2023, table 3: sum_l w_l h^l over three encoder layers, LN of it by default."""
import sys

import numpy as np
from layers import encoder_layer, layer_weights
from zoo import check, layer_norm, norm_weights, uniform

PLAIN = any("normalise=false" in a for a in sys.argv)


def oracle(inputs, weights):
    states = [inputs["x"].astype(np.float64)]
    for l in range(3):
        states.append(encoder_layer(states[-1], weights, f"layer.{l}"))
    g = np.tensordot(weights["fusion.weight"].astype(np.float64), np.stack(states[1:]), 1)
    return {"g": g if PLAIN else layer_norm(g, weights, "fusion.norm")}


rng = np.random.default_rng(302)
cases = []
for b, n, d in [(2, 7, 12), (1, 1, 4), (1, 150, 8)]:
    weights = {k: w for l in range(3) for k, w in layer_weights(rng, f"layer.{l}", d).items()}
    weights["fusion.weight"] = uniform(rng, 3)
    if not PLAIN:
        weights |= norm_weights(rng, "fusion.norm", d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("depth/layer-fusion-weighted", oracle, cases)
