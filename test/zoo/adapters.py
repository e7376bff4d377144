# RUN: %python %s heedc
"""Rebuffi et al. 2017 at the places of Houlsby et al. 2019, section 2: LN(x + A_t(F(x))) after attention and feed-forward layer, A_t(h) = h +
W_up[t] relu(W_down[t] h). Sentence by sentence, each with the adapter of its task. Up-projections of zero (as they start): the layers without."""
import numpy as np
from zoo import check, encoder_weights, feed_forward, layer_norm, multi_head, uniform


def adapt(h, weights, at, task):
    down, up, c, d = (weights[at + name][task].astype(np.float64) for name in (".down.weight", ".up.weight", ".down.bias", ".up.bias"))
    return h + np.maximum(h @ down.T + c, 0) @ up.T + d


def oracle(inputs, weights):
    out = []
    for x, task in zip(inputs["x"].astype(np.float64), inputs["task"]):
        x = x[None]
        for at in ("layer.0.", "layer.1."):
            x = layer_norm(x + adapt(multi_head(x, x, weights, 4, at), weights, at + "adapter1", task), weights, at + "norm1")
            x = layer_norm(x + adapt(feed_forward(x, weights, at), weights, at + "adapter2", task), weights, at + "norm2")
        out.append(x[0])
    return {"y": np.stack(out)}


rng = np.random.default_rng(615)
cases = []
shapes = [([2, 0, 2], 9, 16, 3, 5, False), ([1], 131, 8, 2, 3, False), ([0], 1, 12, 1, 1, False), ([3, 1], 7, 8, 4, 2, True)]
for tasks, n, d, count, r, zero in shapes:
    weights = encoder_weights(rng, 2, d)
    for at in (f"layer.{l}.adapter{k}" for l in range(2) for k in (1, 2)):
        scale = np.float32(0 if zero else r**-0.5)
        weights |= {at + ".down.weight": uniform(rng, count, r, d) * np.float32(d**-0.5), at + ".down.bias": uniform(rng, count, r)}
        weights |= {at + ".up.weight": uniform(rng, count, d, r) * scale, at + ".up.bias": uniform(rng, count, d) * scale}
    cases.append((dict(x=uniform(rng, len(tasks), n, d), task=np.array(tasks, np.int32)), weights))
check("ffn/adapters", oracle, cases)
