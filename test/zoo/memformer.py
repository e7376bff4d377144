# RUN: %python %s heedc
# RUN: %python %s heedc --set=layers=1 --set=heads=1
"""Wu et al. 2020, sections 3.2 to 3.4, slot by slot: layers of self-attention, attention to the slots and a feed-forward network; then m^i =
softmax(q_i [k_i; K_x] / tau) [m^i; V_x], m^i = (m^i + v^i) / |m^i + v^i|, from m^i = v^i / |v^i|."""
import sys

import numpy as np
from zoo import attention_weights, check, feed_forward, feed_forward_weights, layer_norm, linear, multi_head, norm_weights, softmax, uniform

option = lambda name, default: next((int(a.split("=")[-1]) for a in sys.argv if f"{name}=" in a), default)
LAYERS, HEADS, TAU = option("layers", 2), option("heads", 2), 0.25
unit = lambda x: x / np.linalg.norm(x)


def write(slot, words, weights):
    q, own = linear(slot, weights, "write.query"), linear(slot, weights, "write.key")
    k, v = linear(words, weights, "write.key"), linear(words, weights, "write.value")
    e = len(slot) // HEADS
    new = np.zeros(len(slot))
    for h in range(0, len(slot), e):
        c = slice(h, h + e)
        p = softmax(np.array([q[c] @ own[c]] + [q[c] @ key[c] for key in k]) / np.sqrt(e) / TAU)
        new[c] = p[0] * slot[c] + p[1:] @ v[:, c]
    return new


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    bias = weights["memory.bias"].astype(np.float64)
    y, last = np.zeros(x.shape), np.zeros((len(x), *bias.shape))
    for b, s in np.ndindex(*x.shape[:2]):
        if s == 0:
            last[b] = [unit(v) for v in bias]
        h, count = x[b, s][None], inputs["length"][b, s]
        live = np.arange(x.shape[2]) < count
        for at in (f"layer.{l}" for l in range(LAYERS)):
            h = layer_norm(h + multi_head(h, h, weights, HEADS, at + ".self.", live), weights, at + ".norm1")
            h = layer_norm(h + multi_head(h, last[b][None], weights, HEADS, at + ".read."), weights, at + ".norm2")
            h = layer_norm(h + feed_forward(h, weights, at + "."), weights, at + ".norm3")
        y[b, s] = h[0]
        last[b] = [unit(write(m, h[0, :count], weights) + v) for m, v in zip(last[b], bias)]
    return {"y": y, "memory": last}


rng = np.random.default_rng(611)
cases = []
for lengths, n, k, d in [([[7, 0, 3], [5, 7, 1]], 7, 3, 10), ([[1]], 1, 1, 8), ([[33, 20]], 33, 17, 34), ([[150, 140]], 150, 5, 16),
                         ([[0, 0]], 3, 2, 6)]:
    weights = {"memory.bias": uniform(rng, k, d)} | attention_weights(rng, "write.", d)
    for at in (f"layer.{l}" for l in range(LAYERS)):
        weights |= attention_weights(rng, at + ".self.", d) | attention_weights(rng, at + ".read.", d) | feed_forward_weights(rng, at + ".", d, 32)
        for norm in ("norm1", "norm2", "norm3"):
            weights |= norm_weights(rng, f"{at}.{norm}", d)
    cases.append((dict(x=uniform(rng, len(lengths), len(lengths[0]), n, d), length=np.array(lengths, np.int32)), weights))
check("recurrence/memformer", oracle, cases)
