# RUN: %python %s heedc
"""Radford et al. 2018, equation 2. The last token's distribution is checked to be that of the prompt alone, whatever follows."""
import math

import numpy as np
from zoo import check, layer_norm, linear, linear_weights, multi_head, norm_weights, softmax, uniform


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def oracle(inputs, weights):
    tokens, positions = (weights[f"{n}.weight"].astype(np.float64) for n in ("tokens", "positions"))
    n = inputs["ids"].shape[1]
    h = tokens[inputs["ids"]] + positions[:n]
    for l in range(2):
        at = f"layer.{l}."
        h = layer_norm(h + multi_head(h, h, weights, 4, at + "self.", np.tri(n, dtype=bool)), weights, at + "norm1")
        h = layer_norm(h + linear(gelu(linear(h, weights, at + "ffn.up")), weights, at + "ffn.down"), weights, at + "norm2")
    return {"p": softmax(h @ tokens.T)}


rng = np.random.default_rng(113)
cases = []
for b, n, d, words, positions in [(2, 9, 16, 11, 9), (1, 140, 8, 23, 150), (1, 1, 8, 3, 4)]:
    weights = {"tokens.weight": uniform(rng, words, d) * np.float32(d**-0.5), "positions.weight": uniform(rng, positions, d)}
    for at in ("layer.0.", "layer.1."):
        for name in ("query", "key", "value", "output"):
            weights |= linear_weights(rng, at + "self." + name, d, d)
        weights |= linear_weights(rng, at + "ffn.up", 64, d) | linear_weights(rng, at + "ffn.down", d, 64)
        weights |= norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    ids = rng.integers(0, words, (b, n)).astype(np.int32)
    whole, prompt = (oracle(dict(ids=x), weights)["p"] for x in (ids, ids[:, : n // 2 + 1]))
    assert np.allclose(whole[:, n // 2], prompt[:, -1])
    cases.append((dict(ids=ids), weights))
check("whole-model/gpt", oracle, cases)
