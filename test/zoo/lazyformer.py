# RUN: %python %s heedc
"""Ying et al. 2021: in blocks of 2 layers the first computes softmax(Q K^T / sqrt(d)) and both use it, each with its own values."""
import numpy as np
from zoo import check, heads, layer_norm, linear, linear_weights, merge, norm_weights, softmax, uniform

LAYERS = [(f"block.{m}.", f"block.{m}.layer.{l}.") for m in range(2) for l in range(2)]


def oracle(inputs, weights):
    x, shared = inputs["x"].astype(np.float64), {}
    live = np.arange(x.shape[1]) < inputs["length"][:, None, None, None]
    for block, at in LAYERS:
        if block not in shared:
            q, k = (heads(linear(x, weights, block + name), 4) for name in ("query", "key"))
            shared[block] = softmax(np.einsum("bhie,bhje->bhij", q, k) / np.sqrt(q.shape[-1]), live)
        a = merge(shared[block] @ heads(linear(x, weights, at + "value"), 4))
        h = layer_norm(x + linear(a, weights, at + "output"), weights, at + "norm1")
        f = linear(np.maximum(linear(h, weights, at + "up"), 0), weights, at + "down")
        x = layer_norm(h + f, weights, at + "norm2")
    return {"y": x}


rng = np.random.default_rng(214)
cases = []
for lengths, n, d in [([9, 4, 0], 9, 16), ([135], 135, 8), ([1], 1, 12)]:
    weights = {}
    for block, at in LAYERS:
        for name in (block + "query", block + "key", at + "value", at + "output"):
            weights |= linear_weights(rng, name, d, d)
        weights |= linear_weights(rng, at + "up", 64, d) | linear_weights(rng, at + "down", d, 64)
        weights |= norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    cases.append((dict(x=uniform(rng, len(lengths), n, d), length=np.array(lengths, np.int32)), weights))
check("prior/lazyformer", oracle, cases)
