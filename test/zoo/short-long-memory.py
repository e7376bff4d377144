# RUN: %python %s heedc
# RUN: %python %s heedc --set=merge=gate
# RUN: %python %s heedc --set=slots=1 --set=heads=1
"""Xiao and Zhu 2023, section 5.2.2: a word's attention to the words of the segment before and of its own up to itself, and its attention to the
slots, are weighed by their sums of exponentials (by default), or by a gate; then each slot attends to all slots and to the segment, m = LN(m +
attention)."""
import sys

import numpy as np
from zoo import attention_weights, check, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform

option = lambda name, default: next((a.split("=")[-1] for a in sys.argv if f"{name}=" in a), default)
SLOTS, HEADS, MERGE = int(option("slots", 4)), int(option("heads", 2)), option("merge", "softmax")


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    B, S, N, D = x.shape
    e = D // HEADS
    y, last = np.zeros(x.shape), np.zeros((B, SLOTS, D))
    for b in range(B):
        m, words = weights["memory.start"].astype(np.float64), x[b].reshape(S * N, D)
        q, k, v = (linear(words, weights, f"attention.{n}") for n in ("query", "key", "value"))
        for s in range(S):
            mk, mv = (linear(m, weights, f"memory.{n}") for n in ("key", "value"))
            for i in range(s * N, s * N + N):
                o, first = np.zeros(D), max(0, (s - 1) * N)
                for h in range(HEADS):
                    c = slice(h * e, h * e + e)
                    near = np.exp(k[first : i + 1, c] @ q[i, c] / np.sqrt(e))
                    far = np.exp(mk[:, c] @ q[i, c] / np.sqrt(e))
                    g = far.sum() / (far.sum() + near.sum())
                    if MERGE == "gate":
                        g = 1 / (1 + np.exp(-linear(words[i], weights, "gate")[h]))
                    o[c] = g * (far @ mv[:, c]) / far.sum() + (1 - g) * (near @ v[first : i + 1, c]) / near.sum()
                y[b, s, i - s * N] = linear(o, weights, "attention.output")
            rows = np.concatenate([m, x[b, s]])
            m = layer_norm(m + multi_head(m[None], rows[None], weights, HEADS, "write.")[0], weights, "write.norm")
        last[b] = m
    return {"y": y, "memory": last}


rng = np.random.default_rng(613)
cases = []
for b, s, n, d in [(2, 4, 3, 8), (1, 1, 1, 4), (1, 3, 70, 16), (2, 0, 3, 4), (1, 2, 33, 34), (1, 7, 1, 6)]:
    weights = {"memory.start": uniform(rng, SLOTS, d)} | attention_weights(rng, "attention.", d) | attention_weights(rng, "write.", d)
    weights |= linear_weights(rng, "memory.key", d, d) | linear_weights(rng, "memory.value", d, d) | norm_weights(rng, "write.norm", d)
    if MERGE == "gate":
        weights |= linear_weights(rng, "gate", HEADS, d)
    cases.append((dict(x=uniform(rng, b, s, n, d)), weights))
check("recurrence/short-long-memory", oracle, cases)
