# RUN: %python %s heedc
# RUN: %python %s heedc --set=layers=3 --set=top=1 --set=selected=[2]
"""Wang et al. 2018; Xiao and Zhu 2023, sections 4.2.3 and table 3: h^l = Layer(FFN([h^s for the selected s; h^(l-1)])) for the last layers, and
Layer(h^(l-1)) for those below; the FFN's first map as one block of columns for each state."""
import sys

import numpy as np
from layers import encoder_layer, layer_weights
from zoo import check, linear, linear_weights, uniform

LAYERS, TOP, SELECTED = (3, 1, [2]) if "--set=top=1" in sys.argv else (4, 2, [0, 1])


def oracle(inputs, weights):
    h = {0: inputs["x"].astype(np.float64)}
    d = h[0].shape[2]
    for l in range(1, LAYERS + 1):
        x = h[l - 1]
        if l > LAYERS - TOP:
            at = f"layer.{l - 1}.fusion"
            columns = np.split(weights[at + ".up.weight"].astype(np.float64), len(SELECTED) + 1, 1)
            u = sum(h[s] @ w.T for s, w in zip(SELECTED + [l - 1], columns)) + weights[at + ".up.bias"]
            x = linear(np.where(u > 0, u, 0), weights, at + ".down")
        h[l] = encoder_layer(x, weights, f"layer.{l - 1}")
    return {"y": h[LAYERS]}


rng = np.random.default_rng(514)
cases = []
for b, n, d in [(2, 7, 12), (1, 1, 4), (1, 150, 8)]:
    weights = {}
    for l in range(LAYERS):
        weights |= layer_weights(rng, f"layer.{l}", d)
        if l >= LAYERS - TOP:
            weights |= linear_weights(rng, f"layer.{l}.fusion.up", 64, (len(SELECTED) + 1) * d) | linear_weights(rng, f"layer.{l}.fusion.down", d, 64)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("depth/multilayer-fusion", oracle, cases)
