"""Layers of Vaswani et al. 2017 in float64, and weights for them, for oracles whose subject is how layers are joined."""
import numpy as np
from zoo import layer_norm, linear, linear_weights, multi_head, norm_weights

HIDDEN = 64


def below(lengths, size):
    """B x 1 x 1 x size: true in front of each length."""
    return (np.arange(size) < np.asarray(lengths)[:, None])[:, None, None, :]


def ffn(x, weights, at):
    return linear(np.maximum(linear(x, weights, f"{at}.up"), 0), weights, f"{at}.down")


def encoder_layer(x, weights, at):
    x = layer_norm(x + multi_head(x, x, weights, 4, f"{at}.attention."), weights, f"{at}.norm1")
    return layer_norm(x + ffn(x, weights, f"{at}.ffn"), weights, f"{at}.norm2")


def pre_norm_layer(x, weights, at, live=None):
    n = layer_norm(x, weights, f"{at}.norm1")
    x = x + multi_head(n, n, weights, 4, f"{at}.attention.", live)
    return x + ffn(layer_norm(x, weights, f"{at}.norm2"), weights, f"{at}.ffn")


def attention_weights(rng, at, d):
    return {k: w for n in ("query", "key", "value", "output") for k, w in linear_weights(rng, f"{at}.{n}", d, d).items()}


def ffn_weights(rng, at, d, hidden=HIDDEN):
    return linear_weights(rng, f"{at}.up", hidden, d) | linear_weights(rng, f"{at}.down", d, hidden)


def layer_weights(rng, at, d):
    return (attention_weights(rng, f"{at}.attention", d) | ffn_weights(rng, f"{at}.ffn", d)
            | norm_weights(rng, f"{at}.norm1", d) | norm_weights(rng, f"{at}.norm2", d))
