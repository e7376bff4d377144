# RUN: %python %s heedc
"""Katharopoulos et al. 2020, equations 1 and 5: LN(x + A(x)), LN(x + FFN(x)) with A in the linear order, phi(x) = elu(x) + 1."""
import numpy as np
from zoo import check, heads, layer_norm, linear, linear_weights, merge, norm_weights, uniform

HEADS = 2


def phi(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    for l in range(2):
        at = f"layer.{l}."
        q, k, v = (heads(linear(x, weights, at + name), HEADS) for name in ("query", "key", "value"))
        q, k = phi(q), phi(k)
        a = np.einsum("bhnc,bhcf->bhnf", q, np.einsum("bhnc,bhnf->bhcf", k, v)) / np.einsum("bhnc,bhc->bhn", q, k.sum(2))[..., None]
        x = layer_norm(x + linear(merge(a), weights, at + "output"), weights, at + "norm1")
        x = layer_norm(x + linear(np.maximum(linear(x, weights, at + "up"), 0), weights, at + "down"), weights, at + "norm2")
    return {"y": x}


rng = np.random.default_rng(322)
cases = []
for b, n, d in [(2, 9, 16), (1, 150, 16), (1, 1, 8)]:
    weights = {}
    for l in range(2):
        for name in ("query", "key", "value", "output"):
            weights |= linear_weights(rng, f"layer.{l}.{name}", d, d)
        weights |= linear_weights(rng, f"layer.{l}.up", 32, d) | linear_weights(rng, f"layer.{l}.down", d, 32)
        weights |= norm_weights(rng, f"layer.{l}.norm1", d) | norm_weights(rng, f"layer.{l}.norm2", d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("linear/linear-transformer", oracle, cases)
