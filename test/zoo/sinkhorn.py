# RUN: %python %s heedc
# RUN: %python %s heedc --set=blocks=3 --set=steps=8
"""Tay et al. 2020, sections 3.1 and 3.2: R = P(block sums), S = exp(R / tau) with its rows and its columns divided by their sums in turn; query i of
a block attends to the keys j of this block and to the keys j of sum_c S[block, c] K_c, token by token."""
import sys

import numpy as np
from zoo import attention_weights, check, heads, linear, linear_weights, merge, softmax, uniform

option = lambda name, default: next((int(a.split("=")[-1]) for a in sys.argv if f"{name}=" in a), default)
BLOCKS, STEPS, TAU, HEADS = option("blocks", 4), option("steps", 5), 0.75, 2


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    size = x.shape[1] // BLOCKS
    q, k, v = (heads(linear(x, weights, f"attention.{n}"), HEADS) for n in ("query", "key", "value"))
    o = np.zeros(q.shape)
    for b, h in np.ndindex(*q.shape[:2]):
        sums = np.array([x[b, c * size : c * size + size].sum(0) for c in range(BLOCKS)])
        R = np.maximum(linear(np.maximum(linear(sums, weights, "sort.hidden"), 0), weights, "sort.output"), 0)
        S = np.exp(R[:, h * BLOCKS : (h + 1) * BLOCKS] / TAU)
        for _ in range(STEPS):
            S = S / S.sum(1, keepdims=True)
            S = S / S.sum(0, keepdims=True)
        assert np.allclose(S.sum(0), 1)
        for i in range(x.shape[1]):
            c = i // size
            rows = [(k[b, h, c * size + t], v[b, h, c * size + t]) for t in range(size)]
            rows += [tuple(sum(S[c, d] * y[b, h, d * size + t] for d in range(BLOCKS)) for y in (k, v)) for t in range(size)]
            p = softmax(np.array([q[b, h, i] @ key for key, _ in rows]) / np.sqrt(q.shape[-1]))
            o[b, h, i] = sum(w * value for w, (_, value) in zip(p, rows))
    return {"y": linear(merge(o), weights, "attention.output")}


rng = np.random.default_rng(602)
cases = []
for b, size, d in [(2, 3, 10), (1, 1, 4), (1, 37, 16), (2, 0, 6), (1, 9, 34)]:
    weights = attention_weights(rng, "attention.", d) | linear_weights(rng, "sort.hidden", d, d)
    weights |= linear_weights(rng, "sort.output", HEADS * BLOCKS, d)
    cases.append((dict(x=uniform(rng, b, BLOCKS * size, d)), weights))
check("sparse/sinkhorn", oracle, cases)
