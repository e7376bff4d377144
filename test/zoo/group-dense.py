# RUN: %python %s heedc
# RUN: %python %s heedc --set=groups=2 --set=p=1
"""Li et al. 2020, section 3.2, on Wang et al. 2019, equation 8: g_k = sum over i <= k of W_{k,i} LN(y_i), y_0 the embedding, y_k what the p pre-norm
layers of group k make of g_{k-1}. What lies above W's diagonal (NaN here) is not read."""
import sys

import numpy as np
from layers import layer_weights, pre_norm_layer
from zoo import check, layer_norm, norm_weights, uniform

GROUPS, P = (2, 1) if "--set=p=1" in sys.argv else (3, 2)


def oracle(inputs, weights):
    W = weights["combine"].astype(np.float64)
    y, normed, layer = inputs["x"].astype(np.float64), [], 0
    for k in range(GROUPS + 1):
        normed.append(layer_norm(y, weights, f"combine.norm.{k}"))
        g = np.tensordot(W[k, : k + 1], normed, 1)
        if k == GROUPS:
            return {"y": g}
        for _ in range(P):
            g = pre_norm_layer(g, weights, f"layer.{layer}")
            layer += 1
        y = g


rng = np.random.default_rng(513)
cases = []
for b, n, d in [(2, 7, 12), (1, 1, 4), (1, 150, 8)]:
    weights = {k: w for l in range(GROUPS * P) for k, w in layer_weights(rng, f"layer.{l}", d).items()}
    for k in range(GROUPS + 1):
        weights |= norm_weights(rng, f"combine.norm.{k}", d)
    W = np.full((GROUPS + 1, GROUPS + 1), np.nan, np.float32)
    lower = np.tril_indices(GROUPS + 1)
    W[lower] = uniform(rng, len(lower[0])) + 0.5
    cases.append((dict(x=uniform(rng, b, n, d)), weights | {"combine": W}))
check("depth/group-dense", oracle, cases)
