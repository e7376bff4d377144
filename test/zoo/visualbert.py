# RUN: %python %s heedc
"""Li et al. 2019; Kim et al. 2021, equations 1 to 5, one pair at a time: words and regions without their padding in one sequence through a BERT.
Rows of padding are compared, too: they are queries of the same keys."""
import math

import numpy as np
from zoo import attention_weights, check, feed_forward_weights, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform


def oracle(inputs, w):
    out = []
    for ids, words, features, regions in zip(inputs["ids"], inputs["words"], inputs["features"].astype(np.float64), inputs["regions"]):
        text = w["word.weight"].astype(np.float64)[ids] + w["position.weight"][: len(ids)] + w["type.weight"][0]
        x = layer_norm(np.concatenate([text, linear(features, w, "visual") + w["type.weight"][1]]), w, "norm")
        live = np.r_[:words, len(ids) : len(ids) + regions]
        for at in ("layer.0.", "layer.1."):
            x = layer_norm(x + multi_head(x[None], x[live][None], w, 4, at + "self.")[0], w, at + "norm1")
            u = linear(x, w, at + "ffn.up")
            x = layer_norm(x + linear(u * (1 + np.vectorize(math.erf)(u / math.sqrt(2))) / 2, w, at + "ffn.down"), w, at + "norm2")
        out.append(x)
    return {"x": np.array(out), "pooled": np.tanh(linear(np.array(out)[:, 0], w, "pooler"))}


rng = np.random.default_rng(606)
cases = []
for words, n, regions, r, f, d in [([7, 3], 7, [2, 5], 5, 9, 16), ([1], 1, [0], 1, 1, 8), ([130, 90], 131, [70, 0], 71, 3, 8), ([0, 2], 2, [0, 3], 3, 2, 8)]:
    w = {"word.weight": uniform(rng, 11, d), "position.weight": uniform(rng, n + 3, d), "type.weight": uniform(rng, 2, d)}
    w |= linear_weights(rng, "visual", d, f) | norm_weights(rng, "norm", d) | linear_weights(rng, "pooler", d, d)
    for at in ("layer.0.", "layer.1."):
        w |= attention_weights(rng, at + "self.", d) | feed_forward_weights(rng, at + "ffn.", d, 64)
        w |= norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    inputs = dict(ids=rng.integers(0, 11, (len(words), n)).astype(np.int32), words=np.array(words, np.int32))
    cases.append((inputs | dict(features=uniform(rng, len(words), r, f), regions=np.array(regions, np.int32)), w))
check("multimodal/visualbert", oracle, cases)
