# RUN: %python %s heedc
"""Dosovitskiy et al. 2021, equations 1 to 4, one image and one patch at a time; a patch is its pixels in reading order, channels innermost."""
import math

import numpy as np
from zoo import check, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform

P, HEADS = 16, 4


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def oracle(inputs, weights):
    out = []
    for image in inputs["image"].astype(np.float64):
        rows = [weights["class"][0].astype(np.float64)]
        for top in range(0, image.shape[0], P):
            for left in range(0, image.shape[1], P):
                rows.append(image[top : top + P, left : left + P].reshape(-1) @ weights["embedding.weight"])
        z = (np.stack(rows) + weights["position"])[None]
        for at in ("layer.0.", "layer.1."):
            m = layer_norm(z, weights, at + "norm1")
            z = multi_head(m, m, weights, HEADS, at + "self.") + z
            z = linear(gelu(linear(layer_norm(z, weights, at + "norm2"), weights, at + "ffn.up")), weights, at + "ffn.down") + z
        out.append(linear(layer_norm(z[0, 0], weights, "norm"), weights, "head"))
    return {"y": np.stack(out)}


rng = np.random.default_rng(121)
cases = []
for b, height, width, channels, d in [(2, 32, 48, 3, 16), (1, 176, 192, 1, 8), (1, 16, 16, 1, 8)]:
    tokens = height // P * (width // P) + 1
    weights = {"embedding.weight": uniform(rng, P * P * channels, d) / np.float32(P), "class": uniform(rng, 1, d), "position": uniform(rng, tokens, d)}
    for at in ("layer.0.", "layer.1."):
        for name in ("query", "key", "value", "output"):
            weights |= linear_weights(rng, at + "self." + name, d, d)
        weights |= linear_weights(rng, at + "ffn.up", 64, d) | linear_weights(rng, at + "ffn.down", d, 64)
        weights |= norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    weights |= norm_weights(rng, "norm", d) | linear_weights(rng, "head", 10, d)
    cases.append((dict(image=uniform(rng, b, height, width, channels)), weights))
check("vision/vit", oracle, cases)
