# RUN: %python %s heedc
# RUN: %python %s heedc --set=layers=3 --set=heads=1
"""Dai et al. 2019, section 3.3, without segments that carry anything: each layer runs over the given memory's real rows and the whole text, word by
word, and a word of segment s sees the words from M before the segment's first up to itself. A_ij = q_i k_j + q_i W R_(i-j) + u k_j + v W R_(i-j)."""
import sys

import numpy as np
from zoo import check, f64, feed_forward, feed_forward_weights, layer_norm, linear_weights, norm_weights, softmax, uniform

option = lambda name, default: next((int(a.split("=")[-1]) for a in sys.argv if f"{name}=" in a), default)
LAYERS, HEADS = option("layers", 2), option("heads", 2)


def sinusoids(t, d):
    angles = t / 10000 ** (np.arange(0, d, 2) / d)
    return np.concatenate([np.sin(angles), np.cos(angles)])


def attend(rows, seen, weights, at):
    """For each row (i, first): row i of `rows` over those from `first` to i."""
    d = rows.shape[1]
    u, v = (weights[n].astype(np.float64).reshape(-1) for n in ("r_w_bias", "r_r_bias"))
    w = {n: weights[f"{at}.{n}.weight"].astype(np.float64) for n in ("query", "key", "value", "distance", "output")}
    k, values = rows @ w["key"].T, rows @ w["value"].T
    far = np.array([w["distance"] @ sinusoids(t, d) for t in range(len(rows))])
    e = d // HEADS
    result = []
    for i, first in seen:
        q, o = w["query"] @ rows[i], np.zeros(d)
        for h in range(0, d, e):
            c = slice(h, h + e)
            s = [q[c] @ k[j, c] + q[c] @ far[i - j, c] + u[c] @ k[j, c] + v[c] @ far[i - j, c] for j in range(first, i + 1)]
            o[c] = softmax(np.array(s) / np.sqrt(e)) @ values[first : i + 1, c]
        result.append(w["output"] @ o)
    return np.reshape(result, (len(seen), d))


def oracle(inputs, weights):
    x, memory = f64(inputs["x"], inputs["memory"])
    B, S, N, D = x.shape
    M = memory.shape[2]
    y, last = np.zeros(x.shape), memory.copy()
    for b, known in enumerate(inputs["known"]):
        h = x[b].reshape(S * N, D)
        for l in range(LAYERS):
            rows = np.concatenate([memory[l, b, M - known :], h])
            last[l, b] = np.concatenate([memory[l, b], h])[len(h) :]
            at = f"layer.{l}"
            seen = [(known + p, max(0, known + p // N * N - M)) for p in range(S * N)]
            h = layer_norm(h + attend(rows, seen, weights, at), weights, at + ".norm1")
            h = layer_norm(h + feed_forward(h, weights, at + "."), weights, at + ".norm2")
        y[b] = h.reshape(S, N, D)
    return {"y": y, "memory": last}


rng = np.random.default_rng(608)
cases = []
# Memories shorter, as long as, and longer than segments; one that nothing fills; none; texts of no segment, segments of one word.
for known, s, n, m, d in [([3, 0, 5], 4, 3, 5, 8), ([4], 2, 7, 4, 16), ([0], 3, 2, 9, 6), ([0, 0], 3, 4, 0, 4), ([2], 1, 1, 2, 8),
                          ([2, 1], 0, 3, 4, 4), ([1], 6, 1, 3, 10), ([70], 2, 70, 140, 32)]:
    weights = {n: uniform(rng, HEADS, d // HEADS) for n in ("r_w_bias", "r_r_bias")}
    for at in (f"layer.{l}" for l in range(LAYERS)):
        for name in ("query", "key", "value", "distance", "output"):
            weights[f"{at}.{name}.weight"] = linear_weights(rng, "", d, d)[".weight"]
        weights |= feed_forward_weights(rng, at + ".", d, 32) | norm_weights(rng, at + ".norm1", d) | norm_weights(rng, at + ".norm2", d)
    b = len(known)
    cases.append((dict(x=uniform(rng, b, s, n, d), memory=uniform(rng, LAYERS, b, m, d), known=np.array(known, np.int32)), weights))
check("recurrence/transformer-xl", oracle, cases)
