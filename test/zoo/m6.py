# RUN: %python %s heedc
"""Lin et al. 2021, section 4, one pair at a time: position i sees the prefix and what is not later than itself, as a loop over positions."""
import math

import numpy as np
from zoo import attention_weights, check, feed_forward_weights, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform


def oracle(inputs, w):
    out = []
    table = w["embedding.weight"].astype(np.float64)
    for features, ids, prefix in zip(inputs["features"].astype(np.float64), inputs["ids"], inputs["prefix"]):
        x = np.concatenate([linear(features, w, "visual"), table[ids]])
        x = layer_norm(x + w["position.weight"][: len(x)], w, "norm")
        for at in ("layer.0.", "layer.1."):
            a = np.concatenate([multi_head(x[None, i : i + 1], x[None, : max(prefix, i + 1)], w, 4, at + "self.")[0] for i in range(len(x))])
            x = layer_norm(x + a, w, at + "norm1")
            u = linear(x, w, at + "ffn.up")
            x = layer_norm(x + linear(u * (1 + np.vectorize(math.erf)(u / math.sqrt(2))) / 2, w, at + "ffn.down"), w, at + "norm2")
        out.append(x[len(features) :] @ table.T)
    return {"logits": np.array(out)}


rng = np.random.default_rng(609)
cases = []
for prefix, r, n, f, d in [([5, 8, 0], 5, 9, 7, 16), ([1], 1, 1, 1, 8), ([70, 141], 67, 74, 3, 8)]:
    w = {"embedding.weight": uniform(rng, 6, d), "position.weight": uniform(rng, r + n + 2, d)} | linear_weights(rng, "visual", d, f)
    w |= norm_weights(rng, "norm", d)
    for at in ("layer.0.", "layer.1."):
        w |= attention_weights(rng, at + "self.", d) | feed_forward_weights(rng, at + "ffn.", d, 64)
        w |= norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    ids = rng.integers(0, 6, (len(prefix), n)).astype(np.int32)
    cases.append((dict(features=uniform(rng, len(prefix), r, f), ids=ids, prefix=np.array(prefix, np.int32)), w))
check("multimodal/m6", oracle, cases)
