# RUN: %python %s heedc
"""Devlin et al. 2019: a bidirectional stack. Real tokens are computed from their sentence alone, without padding; rows of padding see the real keys."""
import math

import numpy as np
from zoo import check, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def oracle(inputs, weights):
    word, position = (weights[f"{n}.weight"].astype(np.float64) for n in ("word", "position"))
    out = []
    for ids, length in zip(inputs["ids"], inputs["length"]):
        x = layer_norm(word[ids] + position[: len(ids)], weights, "norm")[None]
        for l in range(2):
            at = f"layer.{l}."
            x = layer_norm(x + multi_head(x, x[:, :length], weights, 4, at + "self."), weights, at + "norm1")
            f = linear(gelu(linear(x, weights, at + "ffn.up")), weights, at + "ffn.down")
            x = layer_norm(x + f, weights, at + "norm2")
        out.append(x[0])
    return {"hidden_states": np.stack(out)}


rng = np.random.default_rng(112)
cases = []
for lengths, n, d, words, positions in [([7, 3, 0], 7, 16, 11, 9), ([140], 140, 8, 23, 140), ([1], 1, 8, 3, 1), ([131, 64], 131, 16, 5, 200)]:
    weights = {"word.weight": uniform(rng, words, d), "position.weight": uniform(rng, positions, d)} | norm_weights(rng, "norm", d)
    for at in ("layer.0.", "layer.1."):
        for name in ("query", "key", "value", "output"):
            weights |= linear_weights(rng, at + "self." + name, d, d)
        weights |= linear_weights(rng, at + "ffn.up", 64, d) | linear_weights(rng, at + "ffn.down", d, 64)
        weights |= norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    cases.append((dict(ids=rng.integers(0, words, (len(lengths), n)).astype(np.int32), length=np.array(lengths, np.int32)), weights))
check("whole-model/encoder-only", oracle, cases)
