# RUN: %python %s heedc
# RUN: %python %s heedc --set=window=1 --set=layers=1
# RUN: %python %s heedc --set=window=200 --set=heads=1
"""Fan et al. 2021, section 3, word by word: layer l attends, from x_t^l, to the memory rows m_(t-s) .. m_(t-1), whose keys and values all layers
share; m_t = sum_l softmax(w)_l x_t^l, the input included. Keys and values are computed from the rows m, which are what is kept here."""
import sys

import numpy as np
from zoo import check, feed_forward, feed_forward_weights, layer_norm, linear, linear_weights, norm_weights, softmax, uniform

option = lambda name, default: next((int(a.split("=")[-1]) for a in sys.argv if f"{name}=" in a), default)
LAYERS, HEADS, WINDOW = option("layers", 3), option("heads", 2), option("window", 8)


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    D = x.shape[2]
    e = D // HEADS
    share, r = softmax(weights["layer_weight"]), weights["distance"].astype(np.float64)
    y, memory = np.zeros(x.shape), np.zeros(x.shape)
    for b, t in np.ndindex(*x.shape[:2]):
        h, rows = x[b, t], memory[b, max(0, t - WINDOW) : t]
        far = np.array([r[len(rows) - 1 - j] for j in range(len(rows))]).reshape(-1, e)
        memory[b, t] = share[0] * h
        for l in range(LAYERS):
            at, o = f"layer.{l}", np.zeros(D)
            q, k, v = linear(h, weights, at + ".query"), linear(rows, weights, "key"), linear(rows, weights, "value")
            for c in (slice(a * e, a * e + e) for a in range(HEADS if t else 0)):
                o[c] = softmax((k[:, c] + far) @ q[c] / np.sqrt(e)) @ v[:, c]
            h = layer_norm(h + linear(o, weights, at + ".output"), weights, at + ".norm1")
            h = layer_norm(h + feed_forward(h, weights, at + "."), weights, at + ".norm2")
            memory[b, t] += share[l + 1] * h
        y[b, t] = h
    return {"y": y, "memory": memory}


rng = np.random.default_rng(619)
cases = []
for b, n, d in [(2, 7, 10), (1, 1, 4), (1, 150, 16), (2, 0, 6), (3, 20, 34)]:
    weights = {"layer_weight": 2 * uniform(rng, LAYERS + 1), "distance": uniform(rng, WINDOW, d // HEADS)}
    weights |= linear_weights(rng, "key", d, d) | linear_weights(rng, "value", d, d)
    for at in (f"layer.{l}" for l in range(LAYERS)):
        weights |= linear_weights(rng, at + ".query", d, d) | linear_weights(rng, at + ".output", d, d) | feed_forward_weights(rng, at + ".", d, 32)
        weights |= norm_weights(rng, at + ".norm1", d) | norm_weights(rng, at + ".norm2", d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("recurrence/feedback-transformer", oracle, cases)
