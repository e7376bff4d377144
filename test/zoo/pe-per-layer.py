# RUN: %python %s heedc
"""Al-Rfou et al. 2019: X^(l) + P^(l) enters layer l; causal post-norm layers (Vaswani et al. 2017)."""
import numpy as np
from zoo import check, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    n = x.shape[1]
    for l in range(2):
        x = x + weights[f"layer.{l}.position"][:n]
        a = multi_head(x, x, weights, 4, f"layer.{l}.", np.tri(n, dtype=bool))
        h = layer_norm(x + a, weights, f"layer.{l}.norm1")
        f = linear(np.maximum(linear(h, weights, f"layer.{l}.up"), 0), weights, f"layer.{l}.down")
        x = layer_norm(h + f, weights, f"layer.{l}.norm2")
    return {"y": x}


rng = np.random.default_rng(104)
cases = []
for b, n, d, t in [(2, 9, 16, 9), (1, 135, 8, 140), (2, 1, 12, 5)]:
    weights = {}
    for l in range(2):
        at = f"layer.{l}."
        weights[at + "position"] = uniform(rng, t, d)
        for name in ("query", "key", "value", "output"):
            weights |= linear_weights(rng, at + name, d, d)
        weights |= linear_weights(rng, at + "up", 64, d) | linear_weights(rng, at + "down", d, 64)
        weights |= norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("position/pe-per-layer", oracle, cases)
