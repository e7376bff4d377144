# RUN: %python %s heedc
"""Lan et al. 2020, section 3.1: embeddings of width 6 (words, positions, segments), their LN, a linear to width 16; three post-norm
layers with tanh-GELU, of which the first two share the weights of group 0 and the last has those of group 1; pooler."""
import os
import sys

import numpy as np
from layers import below
from zoo import MODELS, check, heads, layer_norm, linear, linear_weights, merge, norm_weights, softmax, uniform

sys.argv.append("--model-dir=" + os.path.join(MODELS, "depth", "check"))
GROUP = "encoder.albert_layer_groups.{}.albert_layers.0"


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def oracle(inputs, weights, eps=1e-12):
    word, pos, kind = (weights[f"embeddings.{n}_embeddings.weight"].astype(np.float64) for n in ("word", "position", "token_type"))
    ids = inputs["ids"]
    e = layer_norm(word[ids] + pos[: ids.shape[1]] + kind[inputs["kind"]], weights, "embeddings.LayerNorm", eps)
    x = linear(e, weights, "encoder.embedding_hidden_mapping_in")
    for group in (0, 0, 1):
        at = GROUP.format(group)
        q, k, v = (heads(linear(x, weights, f"{at}.attention.{n}"), 4) for n in ("query", "key", "value"))
        p = softmax(q @ k.swapaxes(-1, -2) / 2, below(inputs["length"], ids.shape[1]))
        x = layer_norm(x + linear(merge(p @ v), weights, f"{at}.attention.dense"), weights, f"{at}.attention.LayerNorm", eps)
        f = linear(gelu(linear(x, weights, f"{at}.ffn")), weights, f"{at}.ffn_output")
        x = layer_norm(x + f, weights, f"{at}.full_layer_layer_norm", eps)
    return {"hidden": x, "pooled": np.tanh(linear(x[:, 0], weights, "pooler"))}


rng = np.random.default_rng(308)
d, width, wide = 16, 6, 24
cases = []
for lengths, n in [([7, 3, 0], 7), ([1], 1), ([135], 140), ([33], 33)]:
    weights = {f"embeddings.{name}_embeddings.weight": uniform(rng, rows, width) for name, rows in (("word", 11), ("position", 140), ("token_type", 2))}
    weights |= norm_weights(rng, "embeddings.LayerNorm", width) | linear_weights(rng, "encoder.embedding_hidden_mapping_in", d, width)
    for group in range(2):
        at = GROUP.format(group)
        for name in ("query", "key", "value", "dense"):
            weights |= linear_weights(rng, f"{at}.attention.{name}", d, d)
        weights |= linear_weights(rng, f"{at}.ffn", wide, d) | linear_weights(rng, f"{at}.ffn_output", d, wide)
        weights |= norm_weights(rng, f"{at}.attention.LayerNorm", d) | norm_weights(rng, f"{at}.full_layer_layer_norm", d)
    weights |= linear_weights(rng, "pooler", d, d)
    shape = (len(lengths), n)
    ids, kind = (rng.integers(0, rows, shape).astype(np.int32) for rows in (11, 2))
    cases.append((dict(ids=ids, kind=kind, length=np.array(lengths, np.int32)), weights))
check("depth/albert", oracle, cases)
