"""The decoder of Radford et al. 2018 in float64, over the whole text and without a cache, and weights for it: what oracles of ways to decode share."""
import math

import numpy as np
from zoo import attention_weights, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform

HEADS, HIDDEN, LAYERS = 4, 64, ("layer.0.", "layer.1.")


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)))


def decoder(tokens, weights):
    """The last layer's rows; their products with the table of tokens are the logits."""
    h = (weights["tokens.weight"].astype(np.float64)[tokens] + weights["positions.weight"][: len(tokens)])[None]
    for at in LAYERS:
        h = layer_norm(h + multi_head(h, h, weights, HEADS, at + "self.", np.tri(len(tokens), dtype=bool)), weights, at + "norm1")
        h = layer_norm(h + linear(gelu(linear(h, weights, at + "ffn.up")), weights, at + "ffn.down"), weights, at + "norm2")
    return h[0]


def logits(tokens, weights):
    return decoder(tokens, weights) @ weights["tokens.weight"].astype(np.float64).T


def draw(rng, words, positions, d, scale=1.0):
    """`scale` is that of the tokens, and so of the logits."""
    weights = {"tokens.weight": uniform(rng, words, d) * np.float32(scale * d**-0.5), "positions.weight": uniform(rng, positions, d)}
    for at in LAYERS:
        weights |= attention_weights(rng, at + "self.", d) | linear_weights(rng, at + "ffn.up", HIDDEN, d) | linear_weights(rng, at + "ffn.down", d, HIDDEN)
        weights |= norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    return weights
