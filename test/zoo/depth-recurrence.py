# RUN: %python %s heedc
# RUN: %python %s heedc --set=steps=1
"""Dehghani et al. 2019, section 2.1: P^t(i, 2j) = sin(i / 10000^(2j/d)) + sin(t / 10000^(2j/d)), P^t(i, 2j + 1) the cosines; A^t = LN((H^(t-1) + P^t)
+ MultiHead(H^(t-1) + P^t)), H^t = LN(A^t + Transition(A^t)) for t = 1 .. T, with one set of weights."""
import sys

import numpy as np
from zoo import attention_weights, check, feed_forward, feed_forward_weights, layer_norm, multi_head, norm_weights, uniform

STEPS = next((int(a.split("=")[-1]) for a in sys.argv if "steps=" in a), 6)


def wave(x, d):
    row = np.zeros(d)
    for j in range(d):
        row[j] = (np.cos if j % 2 else np.sin)(x / 10000 ** (j // 2 * 2 / d))
    return row


def oracle(inputs, weights):
    h = inputs["h"].astype(np.float64)
    n, d = h.shape[1:]
    live = (np.arange(n) < inputs["length"][:, None])[:, None, None]
    for t in range(1, STEPS + 1):
        x = h + np.reshape([wave(i, d) + wave(t, d) for i in range(n)], (n, d))
        a = layer_norm(x + multi_head(x, x, weights, 2, "attention.", live), weights, "norm1")
        h = layer_norm(a + feed_forward(a, weights, "transition."), weights, "norm2")
    return {"h": h}


rng = np.random.default_rng(605)
cases = []
for lengths, n, d in [([7, 5, 0], 7, 10), ([1], 1, 8), ([2, 33], 33, 34), ([150], 150, 16), ([0, 0], 0, 6), ([0], 3, 12)]:
    weights = attention_weights(rng, "attention.", d) | feed_forward_weights(rng, "transition.", d, 32)
    weights |= norm_weights(rng, "norm1", d) | norm_weights(rng, "norm2", d)
    cases.append((dict(h=uniform(rng, len(lengths), n, d), length=np.array(lengths, np.int32)), weights))
check("depth/depth-recurrence", oracle, cases)
