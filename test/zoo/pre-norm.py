# RUN: %python %s heedc
"""Wang et al. 2019: x + F(LN(x)) in each sublayer, one LN after the stack; erf-GELU."""
import math

import numpy as np
from zoo import check, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    for l in range(3):
        n = layer_norm(x, weights, f"layer.{l}.norm1")
        x = x + multi_head(n, n, weights, 4, f"layer.{l}.")
        m = layer_norm(x, weights, f"layer.{l}.norm2")
        x = x + linear(gelu(linear(m, weights, f"layer.{l}.up")), weights, f"layer.{l}.down")
    return {"y": layer_norm(x, weights, "norm")}


rng = np.random.default_rng(18)
cases = []
for b, n, d in [(2, 9, 16), (1, 33, 32)]:
    weights = norm_weights(rng, "norm", d)
    for l in range(3):
        for name in ("query", "key", "value", "output"):
            weights |= linear_weights(rng, f"layer.{l}.{name}", d, d)
        weights |= linear_weights(rng, f"layer.{l}.up", 64, d) | linear_weights(rng, f"layer.{l}.down", d, 64)
        weights |= norm_weights(rng, f"layer.{l}.norm1", d) | norm_weights(rng, f"layer.{l}.norm2", d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("norm-residual/pre-norm", oracle, cases)
