# RUN: %python %s heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Dai et al. 2019, section 3.3, layer by layer over the whole text and without a memory: a word sees the words from M before its segment's first up to itself.
A_ij = q_i k_j + q_i W R_(i-j) + u k_j + v W R_(i-j). Segments of several sizes, of one word; with room for all words any segments give the whole text at once."""
import numpy as np
from states import check_segments, compile
from oracles import parts
from zoo import feed_forward, feed_forward_weights, layer_norm, linear_weights, norm_weights, softmax, uniform

HEADS, LAYERS = 2, ("layer.0.", "layer.1.")


def attend(x, first, weights, at):
    """Row i of x over those from first[i] to i."""
    n, d = x.shape
    w = {name: weights[f"{at}{name}.weight"].astype(np.float64) for name in ("query", "key", "value", "distance", "output")}
    u, v = (weights[name].astype(np.float64) for name in ("r_w_bias", "r_r_bias"))
    angles = np.arange(n)[:, None] / 10000 ** (np.arange(0, d, 2) / d)
    split = lambda y: y.reshape(n, HEADS, d // HEADS)
    far = split(np.concatenate([np.sin(angles), np.cos(angles)], 1) @ w["distance"].T)
    q, k, values = split(x @ w["query"].T), split(x @ w["key"].T), split(x @ w["value"].T)
    o = np.zeros(q.shape)
    for i, start in enumerate(first):
        seen = slice(start, i + 1)
        s = np.einsum("he,jhe->hj", q[i] + u, k[seen]) + np.einsum("he,jhe->hj", q[i] + v, far[i - np.arange(start, i + 1)])
        o[i] = np.einsum("hj,jhe->he", softmax(s / np.sqrt(d // HEADS)), values[seen])
    return o.reshape(n, d) @ w["output"].T


def oracle(x, weights, sizes, memory):
    first = np.concatenate([np.full(z - a, max(0, a - memory)) for a, z in parts(x.shape[1], sizes)])
    y = []
    for h in x.astype(np.float64):
        for at in LAYERS:
            h = layer_norm(h + attend(h, first, weights, at), weights, at + "norm1")
            h = layer_norm(h + feed_forward(h, weights, at), weights, at + "norm2")
        y.append(h)
    return np.array(y)


rng = np.random.default_rng(106)
for b, n, d, memory, cuts in [(2, 23, 16, 23, [(23,), (1,), (7,)]), (2, 24, 8, 5, [(3,), (8,), (1,), (7, 2)]), (1, 6, 12, 0, [(2,)]), (3, 9, 4, 1, [(1,)]),
                              (1, 140, 32, 150, [(140,), (70, 13)])]:
    weights = {name: uniform(rng, HEADS, d // HEADS) for name in ("r_w_bias", "r_r_bias")}
    for at in LAYERS:
        weights |= {f"{at}{name}.weight": linear_weights(rng, "", d, d)[".weight"] for name in ("query", "key", "value", "distance", "output")}
        weights |= feed_forward_weights(rng, at, d, 32) | norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    m, x = compile("recurrence/transformer-xl-memory", weights), uniform(rng, b, n, d)
    whole = oracle(x, weights, (n,), n)
    for sizes in cuts:
        want = oracle(x, weights, sizes, memory)
        assert memory < n or np.allclose(want, whole)
        check_segments(m, x, want, sizes, lambda: m.state(B=b, D=d, M=memory), f"transformer-xl-memory, {n} words in segments of {sizes}, memory of {memory}")
