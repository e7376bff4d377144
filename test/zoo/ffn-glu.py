# RUN: %python %s heedc
# RUN: %python %s heedc --set=kind=0
# RUN: %python %s heedc --set=kind=1
# RUN: %python %s heedc --set=kind=2
"""Shazeer 2020, equations 5 and 6: (f(x W) * x V) W2 with f = sigmoid, relu, gelu, silu for kind 0 .. 3 (3 by default)."""
import math
import sys

import numpy as np
from zoo import check, uniform

KIND = next((int(a.split("=")[-1]) for a in sys.argv if "kind=" in a), 3)


def activation(x):
    gate = 1 / (1 + np.exp(-x))
    return [gate, np.maximum(x, 0), 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))), x * gate][KIND]


def oracle(inputs, weights):
    gate, up, down = (weights[f"{n}.weight"].astype(np.float64) for n in ("gate", "up", "down"))
    x = inputs["x"].astype(np.float64)
    return {"y": activation(x @ gate.T) * (x @ up.T) @ down.T}


rng = np.random.default_rng(17)
cases = []
for b, n, d, a in [(2, 5, 16, 24), (1, 40, 64, 128), (1, 1, 3, 5)]:
    weights = {"gate.weight": uniform(rng, a, d), "up.weight": uniform(rng, a, d), "down.weight": uniform(rng, d, a)}
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("ffn/ffn-glu", oracle, cases)
