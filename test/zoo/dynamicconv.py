# RUN: %python %s heedc
# RUN: %python %s heedc --set=causal=true
"""Wu et al. 2019, section 4: DynamicConv(X, i, c) = LightConv(X, f(X_i), i, c), f(X_i) = W^Q X_i, here as a matrix over the positions: a band
filled from the taps of each row, times the channels of a head."""
import sys

import numpy as np
from zoo import check, linear, linear_weights, softmax, uniform

CAUSAL = "--set=causal=true" in sys.argv


def oracle(inputs, weights):
    u = linear(inputs["x"].astype(np.float64), weights, "input")
    b, n, d = u.shape[0], u.shape[1], u.shape[2] // 2
    x = u[..., :d] / (1 + np.exp(-u[..., d:]))
    w = weights["conv.weight"].astype(np.float64)
    heads, k = w.shape[:2]
    taps = softmax(np.einsum("bnd,hkd->bhnk", x, w))
    band = np.zeros((b, heads, n, n + 2 * k))  # column k is position 0
    for i in range(n):
        first = i + k - (k - 1 if CAUSAL else k // 2)
        band[:, :, i, first:first + k] = taps[:, :, i]
    y = np.einsum("bhij,bjhr->bihr", band[..., k:k + n], x.reshape(b, n, heads, d // heads)).reshape(b, n, d)
    return {"z": linear(y, weights, "output")}


rng = np.random.default_rng(604)
cases = []
for b, n, d, h, k in [(2, 9, 8, 2, 3), (1, 140, 6, 3, 5), (1, 5, 4, 4, 11), (1, 6, 7, 1, 4), (1, 1, 1, 1, 1)]:
    weights = linear_weights(rng, "input", 2 * d, d) | linear_weights(rng, "output", d, d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights | {"conv.weight": uniform(rng, h, k, d)}))
check("conv-hybrid/dynamicconv", oracle, cases)
