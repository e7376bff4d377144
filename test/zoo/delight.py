# RUN: %python %s heedc
"""Mehta et al. 2020, section 3: expand-reduce by grouped linear maps (2 and 4 of them, up to 2 and 3 times the width), single-head attention of
half the width, a feed-forward layer that narrows by 4. The first block has 2 maps in groups 1 1, the second 4 in groups 1 2 2 1."""
import math

import numpy as np
from zoo import check, layer_norm, linear, linear_weights, norm_weights, softmax, uniform

BLOCKS = [([1, 1], [2, 0.5]), ([1, 2, 2, 1], [2, 3, 1.75, 0.5])]  # groups; widths in units of D


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def transform(x, weights, at, groups):
    """x: N x D."""
    y = None
    for l, count in enumerate(groups):
        if l == 0:
            parts = np.split(x, count, 1)
        else:
            shuffled = np.stack(np.split(y, groups[l - 1], 1), 2).reshape(y.shape)
            parts = [np.concatenate(pair, 1) for pair in zip(np.split(x, count, 1), np.split(shuffled, count, 1))]
        w, bias = (weights[f"{at}.{l}.{n}"].astype(np.float64) for n in ("weight", "bias"))
        y = gelu(np.concatenate([part @ w[g].T for g, part in enumerate(parts)], 1) + bias)
    return y


def oracle(inputs, weights):
    out = []
    for x in inputs["x"].astype(np.float64):
        for b, (groups, _) in enumerate(BLOCKS):
            t = transform(x, weights, f"block.{b}.transform", groups)
            q, k, v = (linear(t, weights, f"block.{b}.{n}") for n in ("query", "key", "value"))
            a = softmax(q @ k.T / np.sqrt(q.shape[1])) @ v
            x = layer_norm(x + linear(a, weights, f"block.{b}.output"), weights, f"block.{b}.norm1")
            f = linear(np.maximum(linear(x, weights, f"block.{b}.ffn.reduce"), 0), weights, f"block.{b}.ffn.expand")
            x = layer_norm(x + f, weights, f"block.{b}.norm2")
        out.append(x)
    return {"y": np.stack(out)}


rng = np.random.default_rng(151)
cases = []
for b, n, d in [(2, 9, 16), (1, 133, 8), (1, 1, 24)]:
    weights = {}
    for k, (groups, widths) in enumerate(BLOCKS):
        at = f"block.{k}."
        into = d
        for l, (g, width) in enumerate(zip(groups, widths)):
            out = int(width * d)
            weights[f"{at}transform.{l}.weight"] = uniform(rng, g, out // g, into // g) * np.float32((into // g) ** -0.5)
            weights[f"{at}transform.{l}.bias"] = uniform(rng, out)
            into = out + d
        for name in ("query", "key", "value"):
            weights |= linear_weights(rng, at + name, d // 2, d // 2)
        weights |= linear_weights(rng, at + "output", d, d // 2) | norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
        weights |= linear_weights(rng, at + "ffn.reduce", d // 4, d) | linear_weights(rng, at + "ffn.expand", d, d // 4)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("whole-model/delight", oracle, cases)
