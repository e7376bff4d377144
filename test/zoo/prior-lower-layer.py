# RUN: %python %s heedc
"""Lin et al. 2022, equation 22: scores w1 A^(l) + w2 g(A^(l-1)) with g = tanh; nothing below the first layer. Post-norm encoder layers."""
import numpy as np
from zoo import check, heads, layer_norm, linear, linear_weights, merge, norm_weights, softmax, uniform


def oracle(inputs, weights):
    x, below = inputs["x"].astype(np.float64), None
    for at in ("layer.0.", "layer.1."):
        q, k, v = (heads(linear(x, weights, at + name), 4) for name in ("query", "key", "value"))
        w1, w2 = weights[at + "w"].astype(np.float64)
        scores = w1 * np.einsum("bhie,bhje->bhij", q, k) / np.sqrt(q.shape[-1])
        if below is not None:
            scores += w2 * np.tanh(below)
        below = scores
        h = layer_norm(x + linear(merge(softmax(scores) @ v), weights, at + "output"), weights, at + "norm1")
        f = linear(np.maximum(linear(h, weights, at + "up"), 0), weights, at + "down")
        x = layer_norm(h + f, weights, at + "norm2")
    return {"y": x}


rng = np.random.default_rng(212)
cases = []
for b, n, d in [(2, 9, 16), (1, 135, 8), (2, 1, 12)]:
    weights = {}
    for at in ("layer.0.", "layer.1."):
        weights[at + "w"] = uniform(rng, 2) + np.float32(1)
        for name in ("query", "key", "value", "output"):
            weights |= linear_weights(rng, at + name, d, d)
        weights |= linear_weights(rng, at + "up", 64, d) | linear_weights(rng, at + "down", d, 64)
        weights |= norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("prior/prior-lower-layer", oracle, cases)
