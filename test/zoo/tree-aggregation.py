# RUN: %python %s heedc
# RUN: %python %s heedc --set=layers=6
# RUN: %python %s heedc --set=kind=iterative
"""Dou et al. 2018, section 3.1: AGG(a, b, c) = LN(FF([a; b; c]) + a + b + c). Hierarchical: node i joins layers 2i - 1, 2i and node i - 1,
and is what layer 2i + 1 reads; iterative: node l joins layer l and node l - 1, the first node is layer 1."""
import sys

import numpy as np
from layers import encoder_layer, layer_weights
from zoo import check, layer_norm, linear, linear_weights, norm_weights, uniform

ITERATIVE = "--set=kind=iterative" in sys.argv
LAYERS = 6 if "--set=layers=6" in sys.argv else 4


def aggregate(states, weights, at):
    inner = np.maximum(linear(np.concatenate(states, -1), weights, at + ".up"), 0)
    return layer_norm(linear(inner, weights, at + ".down") + np.sum(states, 0), weights, at + ".norm")


def oracle(inputs, weights):
    x, node, pending, count = inputs["x"].astype(np.float64), None, [], 0
    for l in range(LAYERS):
        x = encoder_layer(x, weights, f"layer.{l}")
        pending.append(x)
        if ITERATIVE and l == 0:
            node, pending = x, []
        elif len(pending) == (1 if ITERATIVE else 2):
            node = aggregate(pending + ([] if node is None else [node]), weights, f"node.{count}")
            pending, count = [], count + 1
            if not ITERATIVE:
                x = node
    return {"y": node}


rng = np.random.default_rng(515)
cases = []
for b, n, d in [(2, 7, 12), (1, 1, 4), (1, 150, 8)]:
    weights = {k: w for l in range(LAYERS) for k, w in layer_weights(rng, f"layer.{l}", d).items()}
    for i in range(LAYERS - 1 if ITERATIVE else LAYERS // 2):
        at, parts = f"node.{i}", 2 if ITERATIVE or i == 0 else 3
        weights |= linear_weights(rng, at + ".up", 64, parts * d) | linear_weights(rng, at + ".down", d, 64) | norm_weights(rng, at + ".norm", d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("depth/tree-aggregation", oracle, cases)
