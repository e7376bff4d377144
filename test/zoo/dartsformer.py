# RUN: %python %s heedc
# RUN: %python %s heedc --model=inverse
"""Zhao et al. 2021, section 3: streams as a list, renewed one after the other by an operation of the sum of the others. The inverse is
checked by what the forward pass began from."""
import sys

import numpy as np
from zoo import attention_weights, check, feed_forward, feed_forward_weights, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform

OPS = [["attention", "ffn", "convolution"], ["gate", "attention", "ffn"]]


def operate(x, kind, w, at):
    a = layer_norm(x, w, at + "norm")
    if kind == "attention":
        return multi_head(a, a, w, 2, at)
    if kind == "ffn":
        return feed_forward(a, w, at)
    if kind == "gate":
        return linear(a, w, at + "value") / (1 + np.exp(-linear(a, w, at + "gate")))
    taps = w[at + "weight"].astype(np.float64)
    padded = np.pad(a, ((0, 0), (1, 1), (0, 0)))
    return sum(padded[:, u : u + a.shape[1]] * taps[:, u] for u in range(3))


def forward(x, w):
    streams = np.split(x.astype(np.float64), 3, -1)
    for l, kinds in enumerate(OPS):
        for k, kind in enumerate(kinds):
            rest = sum(z for s, z in enumerate(streams) if s != k)
            streams[k] = streams[k] + operate(rest, kind, w, f"layer.{l}.{k}.")
    return np.concatenate(streams, -1)


rng = np.random.default_rng(621)
inverse = "--model=inverse" in sys.argv
cases = []
for b, n, d in [(2, 13, 12), (1, 1, 6), (1, 139, 12)]:
    w, c = {}, d // 3
    for l, kinds in enumerate(OPS):
        for k, kind in enumerate(kinds):
            at = f"layer.{l}.{k}."
            w |= norm_weights(rng, at + "norm", c)
            if kind == "attention":
                w |= attention_weights(rng, at, c)
            elif kind == "ffn":
                w |= feed_forward_weights(rng, at, c, 4 * c)
            elif kind == "gate":
                w |= linear_weights(rng, at + "value", c, c) | linear_weights(rng, at + "gate", c, c)
            else:
                w |= {at + "weight": uniform(rng, c, 3)}
    x = uniform(rng, b, n, d)
    cases.append((dict(y=forward(x, w).astype(np.float32)), w | {"x": x}) if inverse else (dict(x=x), w))
if inverse:
    check("search-result/dartsformer", lambda inputs, w: {"x": w["x"].astype(np.float64)}, cases, tolerance=1e-4)
else:
    check("search-result/dartsformer", lambda inputs, w: {"y": forward(inputs["x"], w)}, cases)
