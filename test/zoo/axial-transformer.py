# RUN: %python %s heedc
"""Ho et al. 2019, section 3: x + MHA(LN(x)) over the pixels of each row, then the same over the pixels of each column."""
import numpy as np
from zoo import check, layer_norm, linear_weights, multi_head, norm_weights, uniform

HEADS = 2


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    height, width = x.shape[1:3]
    for y in range(height):
        n = layer_norm(x[:, y], weights, "layer.0.row.norm")
        x[:, y] += multi_head(n, n, weights, HEADS, "layer.0.row.")
    for column in range(width):
        n = layer_norm(x[:, :, column], weights, "layer.0.column.norm")
        x[:, :, column] += multi_head(n, n, weights, HEADS, "layer.0.column.")
    return {"y": x}


rng = np.random.default_rng(315)
cases = []
for b, h, w, d in [(2, 5, 7, 8), (1, 3, 140, 8), (1, 131, 2, 4), (1, 1, 1, 4)]:
    weights = {}
    for axis in ("row", "column"):
        weights |= norm_weights(rng, f"layer.0.{axis}.norm", d)
        for name in ("query", "key", "value", "output"):
            weights |= linear_weights(rng, f"layer.0.{axis}.{name}", d, d)
    cases.append((dict(x=uniform(rng, b, h, w, d)), weights))
check("sparse/axial-transformer", oracle, cases)
