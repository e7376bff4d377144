# RUN: %python %s heedc
# RUN: %python %s heedc --set=layers=1
"""Xiao and Zhu 2023, table 3: FFN([Att_self(h^1, .., h^L)]), word by word: the L states of one word are a sequence for multi-head
attention (equations 26 to 31), whose L outputs are joined. With one layer the attention is its value and output projections."""
import sys

import numpy as np
from layers import attention_weights, encoder_layer, layer_weights
from zoo import check, linear, linear_weights, softmax, uniform

LAYERS = 1 if "--set=layers=1" in sys.argv else 3


def self_attention(states, weights):
    """L x D to L x D."""
    q, k, v = (np.split(linear(states, weights, f"fusion.{name}"), 4, 1) for name in ("query", "key", "value"))
    return linear(np.hstack([softmax(a @ b.T / np.sqrt(a.shape[1])) @ c for a, b, c in zip(q, k, v)]), weights, "fusion.output")


def oracle(inputs, weights):
    h = [inputs["x"].astype(np.float64)]
    for l in range(LAYERS):
        h.append(encoder_layer(h[-1], weights, f"layer.{l}"))
    g = np.empty(h[0].shape)
    for word in np.ndindex(*g.shape[:2]):
        joined = self_attention(np.array([state[word] for state in h[1:]]), weights).reshape(-1)
        g[word] = linear(np.maximum(linear(joined, weights, "fusion.up"), 0), weights, "fusion.down")
    return {"g": g}


rng = np.random.default_rng(511)
cases = []
for b, n, d in [(2, 7, 12), (1, 1, 4), (1, 150, 8)]:
    weights = {k: w for l in range(LAYERS) for k, w in layer_weights(rng, f"layer.{l}", d).items()} | attention_weights(rng, "fusion", d)
    weights |= linear_weights(rng, "fusion.up", 64, LAYERS * d) | linear_weights(rng, "fusion.down", d, 64)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("depth/layer-fusion-attention", oracle, cases)
