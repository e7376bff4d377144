# RUN: %python %s heedc
"""He et al. 2020: the scores of a layer are Q K^T / sqrt(d) and those of all layers below it. Post-norm encoder layers; padded keys are masked."""
import numpy as np
from zoo import check, heads, layer_norm, linear, linear_weights, merge, norm_weights, softmax, uniform


def oracle(inputs, weights):
    x, history = inputs["x"].astype(np.float64), []
    live = np.arange(x.shape[1]) < inputs["length"][:, None, None, None]
    for at in ("layer.0.", "layer.1."):
        q, k, v = (heads(linear(x, weights, at + name), 4) for name in ("query", "key", "value"))
        history.append(np.einsum("bhie,bhje->bhij", q, k) / np.sqrt(q.shape[-1]))
        h = layer_norm(x + linear(merge(softmax(sum(history), live) @ v), weights, at + "output"), weights, at + "norm1")
        f = linear(np.maximum(linear(h, weights, at + "up"), 0), weights, at + "down")
        x = layer_norm(h + f, weights, at + "norm2")
    return {"y": x}


rng = np.random.default_rng(213)
cases = []
for lengths, n, d in [([9, 4, 0], 9, 16), ([135], 135, 8), ([1], 1, 12), ([3, 40], 40, 8)]:
    weights = {}
    for at in ("layer.0.", "layer.1."):
        for name in ("query", "key", "value", "output"):
            weights |= linear_weights(rng, at + name, d, d)
        weights |= linear_weights(rng, at + "up", 64, d) | linear_weights(rng, at + "down", d, 64)
        weights |= norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    cases.append((dict(x=uniform(rng, len(lengths), n, d), length=np.array(lengths, np.int32)), weights))
check("prior/realformer", oracle, cases)
