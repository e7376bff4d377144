# RUN: %python %s heedc
# RUN: %python %s heedc --set=causal=true
"""Wu et al. 2019, section 3: LightConv_{i,c} = sum_{j=1..k} softmax(W_{ceil(cH/d)})_j X_{i + j - ceil((k+1)/2), c}, all counted from 1,
between a linear layer with a GLU and a linear layer."""
import math
import sys

import numpy as np
from zoo import check, linear, linear_weights, softmax, uniform

CAUSAL = "--set=causal=true" in sys.argv


def oracle(inputs, weights):
    u = linear(inputs["x"].astype(np.float64), weights, "block.input")
    n, d = u.shape[1], u.shape[2] // 2
    x = u[..., :d] / (1 + np.exp(-u[..., d:]))
    w = softmax(weights["block.conv.weight"])
    heads, k = w.shape
    y = np.zeros(x.shape)
    for i in range(1, n + 1):
        for c in range(1, d + 1):
            for j in range(1, k + 1):
                at = i + j - (k if CAUSAL else math.ceil((k + 1) / 2))
                if 1 <= at <= n:
                    y[:, i - 1, c - 1] += w[math.ceil(c * heads / d) - 1, j - 1] * x[:, at - 1, c - 1]
    return {"y": linear(y, weights, "block.output")}


rng = np.random.default_rng(603)
cases = []
for b, n, d, h, k in [(2, 9, 8, 2, 3), (1, 140, 6, 3, 5), (1, 5, 4, 4, 11), (1, 6, 7, 1, 4), (1, 1, 1, 1, 1)]:
    weights = linear_weights(rng, "block.input", 2 * d, d) | linear_weights(rng, "block.output", d, d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights | {"block.conv.weight": uniform(rng, h, k)}))
check("conv-hybrid/lightconv", oracle, cases)
