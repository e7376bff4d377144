# RUN: %python %s heedc
"""Liu et al. 2021, section 2: Z = gelu(LN(X) U), s(Z) = Z1 * (W LN(Z2) + b), X + s(Z) V; two blocks, position by position."""
import math

import numpy as np
from zoo import check, layer_norm, linear, linear_weights, norm_weights, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    for at in ("layer.0.", "layer.1."):
        z = linear(layer_norm(x, weights, at + "norm"), weights, at + "up")
        z = z * (1 + np.vectorize(math.erf, otypes=[float])(z / math.sqrt(2))) / 2
        z1, z2 = np.split(z, 2, -1)
        z2 = layer_norm(z2, weights, at + "spatial.norm")
        w, b = (weights[f"{at}spatial.{name}"].astype(np.float64) for name in ("weight", "bias"))
        mixed = np.stack([sum(w[i, j] * z2[:, j] for j in range(x.shape[1])) + b[i] for i in range(x.shape[1])], 1)
        x = x + linear(z1 * mixed, weights, at + "down")
    return {"y": x}


rng = np.random.default_rng(701)
cases = []
for b, n, d, t in [(2, 9, 8, 12), (1, 140, 6, 140), (1, 1, 4, 1), (2, 1, 4, 5)]:
    weights = {}
    for at in ("layer.0.", "layer.1."):
        weights |= norm_weights(rng, at + "norm", d) | norm_weights(rng, at + "spatial.norm", 16)
        weights |= linear_weights(rng, at + "up", 32, d) | linear_weights(rng, at + "down", d, 16)
        weights |= {at + "spatial.weight": uniform(rng, t, t) * np.float32(n**-0.5), at + "spatial.bias": uniform(rng, t)}
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("ffn/gmlp", oracle, cases)
