# RUN: %python %s heedc
"""Wang et al. 2019, section 2: 30 encoder layers x + F(LN(x)), one LN after them; sentences without their padding (NaN here)."""
import numpy as np
from layers import layer_weights, pre_norm_layer
from zoo import check, layer_norm, norm_weights, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    out = np.full(x.shape, np.nan)
    for b, length in enumerate(inputs["length"]):
        y = x[b : b + 1, :length]
        for l in range(30):
            y = pre_norm_layer(y, weights, f"layer.{l}")
        out[b, :length] = layer_norm(y[0], weights, "norm")
    return {"y": out}


rng = np.random.default_rng(307)
cases = []
for lengths, n, d in [([7, 3], 7, 12), ([1], 1, 4), ([140], 140, 8), ([0, 2], 3, 8)]:
    weights = {k: w for l in range(30) for k, w in layer_weights(rng, f"layer.{l}", d).items()}
    x = uniform(rng, len(lengths), n, d)
    for b, length in enumerate(lengths):
        x[b, length:] = np.nan
    cases.append((dict(x=x, length=np.array(lengths, np.int32)), weights | norm_weights(rng, "norm", d)))
check("depth/transformer-deep", oracle, cases)
