# RUN: %python %s heedc
# RUN: %python %s heedc --set=memory=3 --set=passes=1 --set=layers=3
"""Ding et al. 2020, sections 3.2 and 3.3: a document is read `passes` times; a word of a segment sees its segment and the last `memory` rows that the
same layer has given for all that was read before; A_ij = (q_i + u) k_j + (q_i + v) W R_(i-j), i - j of either sign."""
import sys
from math import erf

import numpy as np
from zoo import check, f64, layer_norm, linear, linear_weights, feed_forward_weights, norm_weights, softmax, uniform

option = lambda name, default: next((int(a.split("=")[-1]) for a in sys.argv if f"{name}=" in a), default)
MEMORY, PASSES, LAYERS, HEADS = option("memory", 8), option("passes", 2), option("layers", 2), 2
gelu = np.vectorize(lambda x: x * (1 + erf(x / 2**0.5)) / 2, otypes=[float])


def sinusoids(t, d):
    angles = t / 10000 ** (np.arange(0, d, 2) / d)
    return np.concatenate([np.sin(angles), np.cos(angles)])


def attend(x, earlier, weights, at):
    """x: the segment's rows, earlier: those of the memory."""
    d, c = x.shape[1], len(earlier)
    u, v = f64(weights["r_w_bias"], weights["r_r_bias"])
    rows = np.concatenate([earlier, x])
    split = lambda y: y.reshape(len(y), HEADS, d // HEADS)
    q, k, value = (split(linear(y, weights, f"{at}.{n}")) for y, n in ((x, "query"), (rows, "key"), (rows, "value")))
    o = np.zeros(q.shape)
    for i in range(len(x)):
        far = split(np.array([weights[f"{at}.distance.weight"].astype(np.float64) @ sinusoids(c + i - j, d) for j in range(len(rows))]))
        s = np.einsum("he,jhe->hj", q[i] + u, k) + np.einsum("he,jhe->hj", q[i] + v, far)
        o[i] = np.einsum("hj,jhe->he", softmax(s / np.sqrt(d // HEADS)), value)
    return linear(o.reshape(len(x), d), weights, f"{at}.output")


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    y = np.zeros(x.shape)
    for b, document in enumerate(x):
        given = [np.zeros((0, x.shape[3])) for _ in range(LAYERS)]  # of each layer, for everything that was read
        for s, segment in list(enumerate(document)) * PASSES:
            h = segment
            for l in range(LAYERS):
                at = f"layer.{l}"
                h = layer_norm(h + attend(h, given[l][max(0, len(given[l]) - MEMORY) :], weights, at), weights, at + ".norm1")
                h = layer_norm(h + linear(gelu(linear(h, weights, at + ".up")), weights, at + ".down"), weights, at + ".norm2")
                given[l] = np.concatenate([given[l], h])
            y[b, s] = h
    return {"y": y}


rng = np.random.default_rng(609)
cases = []
for b, s, n, d in [(2, 3, 3, 8), (1, 2, 11, 16), (1, 1, 1, 6), (2, 0, 3, 4), (1, 13, 1, 10), (1, 3, 70, 32)]:
    weights = {n: uniform(rng, HEADS, d // HEADS) for n in ("r_w_bias", "r_r_bias")}
    for at in (f"layer.{l}" for l in range(LAYERS)):
        for name in ("query", "key", "value", "distance", "output"):
            weights |= linear_weights(rng, f"{at}.{name}", d, d)
        del weights[f"{at}.distance.bias"]
        weights |= feed_forward_weights(rng, at + ".", d, 32) | norm_weights(rng, at + ".norm1", d) | norm_weights(rng, at + ".norm2", d)
    cases.append((dict(x=uniform(rng, b, s, n, d)), weights))
check("recurrence/ernie-doc", oracle, cases)
