# RUN: %python %s heedc
# RUN: %python %s heedc --set=kept=[0,1,2,3] --set=H=4 --set=A=32
"""Hou et al. 2020, section 2: heads and hidden units behind the first ones, and layers that are not kept, are cut out of the weights; what
is left is an ordinary post-norm BERT. Layers 0 and 2 of 4, 2 of 4 heads of size 4, 24 of 32 units unless given."""
import math
import sys

import numpy as np
from zoo import check, encoder_weights, layer_norm, linear, multi_head, uniform

WHOLE = any("kept" in a for a in sys.argv)
LAYERS, HEADS, UNITS = ((0, 1, 2, 3), 4, 32) if WHOLE else ((0, 2), 2, 24)


def cut(weights, at):
    """The layer as a checkpoint of its own."""
    rows = {"query": HEADS * 4, "key": HEADS * 4, "value": HEADS * 4, "up": UNITS}
    columns = {"output": HEADS * 4, "down": UNITS}
    layer = {name: weights[f"layer.{at}.{name}"] for name in ("norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias")}
    for name, count in rows.items():
        layer |= {name + ".weight": weights[f"layer.{at}.{name}.weight"][:count], name + ".bias": weights[f"layer.{at}.{name}.bias"][:count]}
    for name, count in columns.items():
        layer |= {name + ".weight": weights[f"layer.{at}.{name}.weight"][:, :count], name + ".bias": weights[f"layer.{at}.{name}.bias"]}
    return layer


def oracle(inputs, weights):
    x, length = inputs["x"].astype(np.float64), inputs["length"]
    live = (np.arange(x.shape[1]) < length[:, None])[:, None, None]
    for layer in (cut(weights, l) for l in LAYERS):
        x = layer_norm(x + multi_head(x, x, layer, HEADS, live=live), layer, "norm1")
        u = linear(x, layer, "up")
        x = layer_norm(x + linear(u * (1 + np.vectorize(math.erf)(u / math.sqrt(2))) / 2, layer, "down"), layer, "norm2")
    return {"y": x}


rng = np.random.default_rng(502)
cases = []
for lengths, n in [((9, 4, 0), 9), ((131,), 140), ((1,), 1)]:
    inputs = dict(x=uniform(rng, len(lengths), n, 16), length=np.array(lengths, np.int32))
    cases.append((inputs, encoder_weights(rng, 4, 16, 32)))
check("moe-conditional/dynabert", oracle, cases)
