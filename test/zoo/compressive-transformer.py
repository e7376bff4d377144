# RUN: %python %s heedc
# RUN: %python %s heedc --set=kind=mean --set=rate=2
# RUN: %python %s heedc --set=kind=max --set=rate=1 --set=layers=1
"""Rae et al. 2020, algorithm 1, layer by layer over a whole text instead of segment by segment: rows = [memory; h_1 h_2 ..]; before segment s the
first s N of them have left, and f_c of each `rate` of these, behind the given compressed memory, is what there is of compressed memory; the last C
count. Scores as in Dai et al. 2019, over [compressed; memory; segment]."""
import sys

import numpy as np
from zoo import check, f64, feed_forward, feed_forward_weights, layer_norm, linear_weights, norm_weights, softmax, uniform

option = lambda name, default: next((a.split("=")[-1] for a in sys.argv if f"{name}=" in a), default)
LAYERS, RATE, KIND, HEADS = int(option("layers", 2)), int(option("rate", 3)), option("kind", "conv"), 2


def sinusoids(t, d):
    angles = t / 10000 ** (np.arange(0, d, 2) / d)
    return np.concatenate([np.sin(angles), np.cos(angles)])


def attend(x, before, weights, at):
    d = x.shape[1]
    u, v = f64(weights["r_w_bias"], weights["r_r_bias"])
    w = {n: weights[f"{at}.{n}.weight"].astype(np.float64) for n in ("query", "key", "value", "distance", "output")}
    split = lambda y: y.reshape(len(y), HEADS, d // HEADS)
    rows = np.concatenate([before, x])
    q, k, value = split(x @ w["query"].T), split(rows @ w["key"].T), split(rows @ w["value"].T)
    o = np.zeros(q.shape)
    for i in range(len(x)):
        end = len(before) + i + 1
        far = split(np.array([w["distance"] @ sinusoids(end - 1 - j, d) for j in range(end)]))
        s = np.einsum("he,jhe->hj", q[i] + u, k[:end]) + np.einsum("he,jhe->hj", q[i] + v, far)
        o[i] = np.einsum("hj,jhe->he", softmax(s / np.sqrt(d // HEADS)), value[:end])
    return o.reshape(len(x), d) @ w["output"].T


def f_c(rows, weights, at):
    if KIND != "conv":
        return rows.mean(0) if KIND == "mean" else rows.max(0)
    w, b = f64(weights[f"{at}.compress.weight"], weights[f"{at}.compress.bias"])
    return sum(w[:, :, u] @ row for u, row in enumerate(rows)) + b


def oracle(inputs, weights):
    x, memory, compressed = f64(*(inputs[n] for n in ("x", "memory", "compressed")))
    B, S, N, D = x.shape
    M, C = memory.shape[2], compressed.shape[2]
    y, last, packed = np.zeros(x.shape), memory.copy(), compressed.copy()
    for b in range(B):
        h = x[b]
        for l in range(LAYERS):
            at = f"layer.{l}"
            rows = np.concatenate([memory[l, b], h.reshape(S * N, D)])
            stream = [f_c(rows[k * RATE : (k + 1) * RATE], weights, at) for k in range(S * N // RATE)]
            stream = np.concatenate([compressed[l, b], np.reshape(stream, (-1, D))])
            g = np.zeros(h.shape)
            for s in range(S + 1):
                k = s * N // RATE
                packed[l, b], last[l, b] = stream[k : k + C], rows[s * N : s * N + M]
                if s < S:
                    g[s] = attend(h[s], np.concatenate([packed[l, b], last[l, b]]), weights, at)
            h = layer_norm(h + g, weights, at + ".norm1")
            h = layer_norm(h + feed_forward(h, weights, at + "."), weights, at + ".norm2")
        y[b] = h
    return {"y": y, "memory": last, "compressed": packed}


rng = np.random.default_rng(610)
cases = []
for b, s, k, m, c, d in [(2, 4, 1, 5, 3, 8), (1, 2, 3, 4, 1, 16), (1, 3, 2, 0, 7, 6), (2, 2, 1, 2, 0, 4), (1, 0, 1, 3, 4, 4), (1, 1, 0, 2, 2, 10),
                          (1, 2, 24, 140, 17, 32)]:
    weights = {n: uniform(rng, HEADS, d // HEADS) for n in ("r_w_bias", "r_r_bias")}
    for at in (f"layer.{l}" for l in range(LAYERS)):
        for name in ("query", "key", "value", "distance", "output"):
            weights[f"{at}.{name}.weight"] = linear_weights(rng, "", d, d)[".weight"]
        weights |= feed_forward_weights(rng, at + ".", d, 32) | norm_weights(rng, at + ".norm1", d) | norm_weights(rng, at + ".norm2", d)
        if KIND == "conv":
            weights |= {f"{at}.compress.weight": uniform(rng, d, d, RATE) / np.float32(np.sqrt(d * RATE)), f"{at}.compress.bias": uniform(rng, d)}
    memories = dict(memory=uniform(rng, LAYERS, b, m, d), compressed=uniform(rng, LAYERS, b, c, d))
    cases.append((dict(x=uniform(rng, b, s, k * RATE, d)) | memories, weights))
check("recurrence/compressive-transformer", oracle, cases)
