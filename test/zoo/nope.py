# RUN: %python %s heedc
"""Irie et al. 2019: a causal pre-norm stack on token embeddings alone, output tied to them; erf-GELU. No position enters anywhere."""
import math

import numpy as np
from zoo import check, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def oracle(inputs, weights):
    word = weights["embedding.weight"].astype(np.float64)
    x = word[inputs["ids"]]
    for l in range(2):
        n = layer_norm(x, weights, f"layer.{l}.norm1")
        x = x + multi_head(n, n, weights, 4, f"layer.{l}.", np.tri(x.shape[1], dtype=bool))
        m = layer_norm(x, weights, f"layer.{l}.norm2")
        x = x + linear(gelu(linear(m, weights, f"layer.{l}.up")), weights, f"layer.{l}.down")
    return {"logits": layer_norm(x, weights, "norm") @ word.T}


rng = np.random.default_rng(111)
cases = []
for b, n, d, vocabulary in [(2, 9, 16, 11), (1, 135, 8, 7), (2, 1, 12, 3)]:
    weights = norm_weights(rng, "norm", d) | {"embedding.weight": uniform(rng, vocabulary, d)}
    for l in range(2):
        for name in ("query", "key", "value", "output"):
            weights |= linear_weights(rng, f"layer.{l}.{name}", d, d)
        weights |= linear_weights(rng, f"layer.{l}.up", 64, d) | linear_weights(rng, f"layer.{l}.down", d, 64)
        weights |= norm_weights(rng, f"layer.{l}.norm1", d) | norm_weights(rng, f"layer.{l}.norm2", d)
    cases.append((dict(ids=rng.integers(0, vocabulary, (b, n), dtype=np.int32)), weights))
check("position/nope", oracle, cases)
