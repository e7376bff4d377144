# RUN: %python %s heedc
"""Ding et al. 2021, section 2.4, one sequence at a time: Sandwich-LN; the softmax as in Vaswani et al. 2017, which PB-Relax does not change."""
import math

import numpy as np
from zoo import attention_weights, check, feed_forward_weights, layer_norm, linear, multi_head, norm_weights, uniform


def oracle(inputs, w):
    out = []
    table = w["embedding.weight"].astype(np.float64)
    for ids in inputs["ids"]:
        x = table[ids] + w["position.weight"][: len(ids)]
        for at in ("layer.0.", "layer.1."):
            m = layer_norm(x, w, at + "norm1")[None]
            x = x + layer_norm(multi_head(m, m, w, 4, at + "self.", np.tri(len(x), dtype=bool))[0], w, at + "norm2")
            u = linear(layer_norm(x, w, at + "norm3"), w, at + "ffn.up")
            x = x + layer_norm(linear(u * (1 + np.vectorize(math.erf)(u / math.sqrt(2))) / 2, w, at + "ffn.down"), w, at + "norm4")
        out.append(layer_norm(x, w, "norm") @ table.T)
    return {"logits": np.array(out)}


rng = np.random.default_rng(611)
cases = []
for b, n, d in [(2, 13, 16), (1, 1, 8), (1, 139, 8)]:
    w = {"embedding.weight": uniform(rng, 7, d), "position.weight": uniform(rng, n + 3, d)} | norm_weights(rng, "norm", d)
    for at in ("layer.0.", "layer.1."):
        w |= attention_weights(rng, at + "self.", d) | feed_forward_weights(rng, at + "ffn.", d, 64)
        for k in range(4):
            w |= norm_weights(rng, f"{at}norm{k + 1}", d)
    cases.append((dict(ids=rng.integers(0, 7, (b, n)).astype(np.int32)), w))
check("multimodal/cogview", oracle, cases)
