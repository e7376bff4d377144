# RUN: %python %s heedc
"""Xiao and Zhu 2023, equation 59, Combine being a Transformer encoder over [H_syn; H_text]. Each side under a mask of its length; in the
joint encoder the real words stand in front, with no gap, and move back after it. One sentence has no tree, one no text, one neither."""
import numpy as np
from layers import below, layer_weights
from zoo import check, feed_forward, layer_norm, multi_head, uniform


def encode(x, live, weights, at, layers):
    for l in range(layers):
        here = f"{at}.{l}."
        x = layer_norm(x + multi_head(x, x, weights, 4, here + "attention.", live), weights, here + "norm1")
        x = layer_norm(x + feed_forward(x, weights, here + "ffn."), weights, here + "norm2")
    return x


def oracle(inputs, weights):
    out = []
    m, n = inputs["t"].shape[1], inputs["x"].shape[1]
    for t, x, a, b in zip(inputs["t"].astype(np.float64), inputs["x"].astype(np.float64), inputs["t_length"], inputs["x_length"]):
        order = np.r_[0:a, m : m + b, a:m, m + b : m + n]  # the real words in front
        sides = [encode(part[None], below([size], len(part)), weights, side, 2) for part, size, side in ((t, a, "syntax"), (x, b, "text"))]
        both = np.concatenate(sides, 1)
        joint = encode(both[:, order], below([a + b], m + n), weights, "joint", 1)[0]
        row = np.empty(joint.shape)
        row[order] = joint
        out.append(row)
    return {"y": np.stack(out)}


rng = np.random.default_rng(525)
cases = []
for a, b, m, n, d in [([9, 4], [3, 5], 9, 5, 12), ([140], [131], 140, 133, 8), ([1], [1], 1, 1, 4), ([0, 3, 0], [4, 0, 0], 5, 4, 8)]:
    weights = {}
    for side, layers in (("syntax", 2), ("text", 2), ("joint", 1)):
        for l in range(layers):
            weights |= layer_weights(rng, f"{side}.{l}", d)
    lengths = dict(t_length=np.array(a, np.int32), x_length=np.array(b, np.int32))
    cases.append((dict(t=uniform(rng, len(a), m, d), x=uniform(rng, len(a), n, d)) | lengths, weights))
check("syntax/multi-encoder-concat", oracle, cases)
