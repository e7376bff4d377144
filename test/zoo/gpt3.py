# RUN: %python %s heedc
"""Brown et al. 2020, section 2.1: GPT-2's pre-norm blocks; every second layer attends to the last 16 tokens only (the token itself among them)."""
import math

import numpy as np
from zoo import check, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def pattern(layer, n):
    live = np.zeros((n, n), bool)
    for i in range(n):
        live[i, max(0, i - 15) if layer % 2 else 0 : i + 1] = True
    return live


def oracle(inputs, weights):
    tokens, positions = (weights[f"{n}.weight"].astype(np.float64) for n in ("tokens", "positions"))
    n = inputs["ids"].shape[1]
    x = tokens[inputs["ids"]] + positions[:n]
    for l in range(2):
        at = f"layer.{l}."
        m = layer_norm(x, weights, at + "norm1")
        x = x + multi_head(m, m, weights, 4, at + "self.", pattern(l, n))
        x = x + linear(gelu(linear(layer_norm(x, weights, at + "norm2"), weights, at + "ffn.up")), weights, at + "ffn.down")
    return {"logits": layer_norm(x, weights, "norm") @ tokens.T}


rng = np.random.default_rng(114)
cases = []
for b, n, d, words, positions in [(2, 37, 16, 11, 40), (1, 260, 8, 23, 260), (1, 1, 8, 3, 4), (1, 16, 8, 5, 16), (1, 17, 8, 5, 17)]:
    weights = {"tokens.weight": uniform(rng, words, d), "positions.weight": uniform(rng, positions, d)} | norm_weights(rng, "norm", d)
    for at in ("layer.0.", "layer.1."):
        for name in ("query", "key", "value", "output"):
            weights |= linear_weights(rng, at + "self." + name, d, d)
        weights |= linear_weights(rng, at + "ffn.up", 64, d) | linear_weights(rng, at + "ffn.down", d, 64)
        weights |= norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    cases.append((dict(ids=rng.integers(0, words, (b, n)).astype(np.int32)), weights))
check("whole-model/gpt3", oracle, cases)
