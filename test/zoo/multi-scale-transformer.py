# RUN: %python %s heedc
"""Guo et al. 2020: head (l, h) attends to the positions i - w .. i + w of its scale w, cut at the ends of the sentence; post-norm layers.
Each query's keys are sliced out. Scales: layer 0 has 0, 1, 1, 3, layer 1 has 1, 3, 20 and the whole sentence."""
import numpy as np
from zoo import check, encoder_weights, feed_forward, heads, layer_norm, linear, merge, softmax, uniform


def oracle(inputs, weights):
    x, length = inputs["x"].astype(np.float64), inputs["length"]
    for at, scales in (("layer.0.", (0, 1, 1, 3)), ("layer.1.", (1, 3, 20, x.shape[1]))):
        q, k, v = (heads(linear(x, weights, at + n), 4) for n in ("query", "key", "value"))
        o = np.zeros(q.shape)
        for b, h, i in np.ndindex(*q.shape[:3]):
            keys = slice(max(i - scales[h], 0), min(i + scales[h] + 1, length[b]))
            if keys.start < keys.stop:
                o[b, h, i] = softmax(k[b, h, keys] @ q[b, h, i] / np.sqrt(q.shape[-1])) @ v[b, h, keys]
        x = layer_norm(x + linear(merge(o), weights, at + "output"), weights, at + "norm1")
        x = layer_norm(x + feed_forward(x, weights, at), weights, at + "norm2")
    return {"y": x}


rng = np.random.default_rng(306)
cases = []
for lengths, n, d in [((9, 4, 0), 9, 16), ((140,), 140, 8), ((1,), 1, 8), ((2, 3), 3, 12)]:
    inputs = dict(x=uniform(rng, len(lengths), n, d), length=np.array(lengths, np.int32))
    cases.append((inputs, encoder_weights(rng, 2, d)))
check("heads/multi-scale-transformer", oracle, cases)
