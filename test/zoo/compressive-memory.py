# RUN: %python %s heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Rae et al. 2020, algorithm 1, a segment at a time, row by row: keys are [compressed; memory; segment] in relative positions of this order (scores as in Dai et al.
2019); then the oldest rows leave the memory, f_c makes one of each `rate` of them, and as many leave the compressed memory. Both begin with zeros."""
import numpy as np
from states import check_segments, compile
from oracles import parts
from zoo import feed_forward, feed_forward_weights, layer_norm, linear_weights, norm_weights, softmax, uniform

HEADS, LAYERS = 2, ("layer.0.", "layer.1.")


def attend(x, before, weights, at):
    d, rows = x.shape[1], np.concatenate([before, x])
    w = {name: weights[f"{at}{name}.weight"].astype(np.float64) for name in ("query", "key", "value", "distance", "output")}
    u, v = (weights[name].astype(np.float64) for name in ("r_w_bias", "r_r_bias"))
    angles = np.arange(len(rows))[:, None] / 10000 ** (np.arange(0, d, 2) / d)
    split = lambda y: y.reshape(len(y), HEADS, d // HEADS)
    far = split(np.concatenate([np.sin(angles), np.cos(angles)], 1) @ w["distance"].T)
    q, k, values = split(x @ w["query"].T), split(rows @ w["key"].T), split(rows @ w["value"].T)
    o = np.zeros(q.shape)
    for i in range(len(x)):
        end = len(before) + i + 1
        s = np.einsum("he,jhe->hj", q[i] + u, k[:end]) + np.einsum("he,jhe->hj", q[i] + v, far[:end][::-1])
        o[i] = np.einsum("hj,jhe->he", softmax(s / np.sqrt(d // HEADS)), values[:end])
    return o.reshape(len(x), d) @ w["output"].T


def compress(rows, weights, at, kind):
    if kind != "conv":
        return rows.mean(0) if kind == "mean" else rows.max(0)
    w, bias = weights[at + "compress.weight"].astype(np.float64), weights[at + "compress.bias"]
    return sum(w[:, :, u] @ row for u, row in enumerate(rows)) + bias


def oracle(x, weights, sizes, memory, compressed, rate, kind):
    result = []
    for text in x.astype(np.float64):
        old = {at: np.zeros((memory, text.shape[1])) for at in LAYERS}
        packed = {at: np.zeros((compressed, text.shape[1])) for at in LAYERS}
        y = []
        for a, z in parts(len(text), sizes):
            h = text[a:z]
            for at in LAYERS:
                g = attend(h, np.concatenate([packed[at], old[at]]), weights, at)
                rows = np.concatenate([old[at], h])
                for k in range(0, len(h), rate):
                    packed[at] = np.concatenate([packed[at], compress(rows[k : k + rate], weights, at, kind)[None]])[1:]
                old[at] = rows[len(h) :]
                h = layer_norm(h + g, weights, at + "norm1")
                h = layer_norm(h + feed_forward(h, weights, at), weights, at + "norm2")
            y.append(h)
        result.append(np.concatenate(y))
    return np.array(result)


rng = np.random.default_rng(108)
for b, n, d, memory, compressed, rate, kind, cuts in [(2, 24, 16, 5, 3, 3, "conv", [(3,), (6, 3), (24,)]), (3, 12, 4, 4, 7, 1, "max", [(1,), (5, 2), (7,)]),
                                                      (1, 8, 6, 2, 0, 2, "mean", [(2,), (8,)]), (1, 144, 32, 70, 9, 3, "conv", [(72,)])]:
    weights = {name: uniform(rng, HEADS, d // HEADS) for name in ("r_w_bias", "r_r_bias")}
    for at in LAYERS:
        weights |= {f"{at}{name}.weight": linear_weights(rng, "", d, d)[".weight"] for name in ("query", "key", "value", "distance", "output")}
        weights |= feed_forward_weights(rng, at, d, 32) | norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
        if kind == "conv":
            weights |= {f"{at}compress.weight": uniform(rng, d, d, rate) / np.float32(np.sqrt(d * rate)), f"{at}compress.bias": uniform(rng, d)}
    m, x = compile("recurrence/compressive-memory", weights, rate=rate, kind=kind), uniform(rng, b, n, d)
    for sizes in cuts:
        want = oracle(x, weights, sizes, memory, compressed, rate, kind)
        check_segments(m, x, want, sizes, lambda: m.state(B=b, D=d, M=memory, C=compressed), f"compressive-memory, {kind}, {n} words in segments of {sizes}")
