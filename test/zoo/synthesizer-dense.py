# RUN: %python %s heedc
"""Tay et al. 2021, section 3: B_i = W2 relu(W1 X_i + b1) + b2 of width T, cut to N before the softmax; Y = softmax(B) G(X); each head by itself."""
import numpy as np
from zoo import check, f64, heads, linear, linear_weights, merge, softmax, uniform

HEADS = 4


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    w1, b1, w2, b2 = f64(*(weights["dense." + name] for name in ("w1", "b1", "w2", "b2")))
    n, v = x.shape[1], heads(linear(x, weights, "value"), HEADS)
    o = np.zeros_like(v)
    for h in range(HEADS):
        for i in range(n):
            scores = np.maximum(x[:, i] @ w1[h].T + b1[h], 0) @ w2[h].T + b2[h]
            o[:, h, i] = np.einsum("bj,bje->be", softmax(scores[:, :n]), v[:, h])
    return {"y": linear(merge(o), weights, "output")}


rng = np.random.default_rng(218)
cases = []
for b, n, d, t, a in [(2, 9, 16, 12, 8), (1, 140, 8, 140, 4), (3, 33, 32, 64, 5), (1, 1, 4, 1, 1), (2, 1, 4, 5, 3)]:
    weights = linear_weights(rng, "value", d, d) | linear_weights(rng, "output", d, d)
    weights |= {"dense.w1": uniform(rng, 4, a, d) * np.float32(d**-0.5), "dense.b1": uniform(rng, 4, a)}
    weights |= {"dense.w2": uniform(rng, 4, t, a) * np.float32(a**-0.5), "dense.b2": uniform(rng, 4, t)}
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("prior/synthesizer-dense", oracle, cases)
