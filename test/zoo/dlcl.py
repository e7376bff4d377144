# RUN: %python %s heedc
"""Wang et al. 2019, section 3: x_{l+1} = sum_{k<=l} W_{l,k} LN(y_k), y_0 the embedding, y_l the output of the pre-norm layer l that
reads x_l; the encoder's output is x_{L+1}. What lies above W's diagonal (NaN here) is not read."""
import numpy as np
from layers import layer_weights, pre_norm_layer
from zoo import check, layer_norm, norm_weights, uniform


def oracle(inputs, weights):
    w = weights["combine"].astype(np.float64)
    outputs = [inputs["x"].astype(np.float64)]
    while True:
        l = len(outputs) - 1
        x = sum(w[l, k] * layer_norm(y, weights, f"combine.norm.{k}") for k, y in enumerate(outputs))
        if l == 3:
            return {"y": x}
        outputs.append(pre_norm_layer(x, weights, f"layer.{l}"))


rng = np.random.default_rng(305)
cases = []
for b, n, d in [(2, 7, 12), (1, 1, 4), (1, 150, 8)]:
    weights = {k: w for l in range(3) for k, w in layer_weights(rng, f"layer.{l}", d).items()}
    for l in range(4):
        weights |= norm_weights(rng, f"combine.norm.{l}", d)
    combine = np.full((4, 4), np.nan, np.float32)
    combine[np.tril_indices(4)] = uniform(rng, 10) + 0.5
    cases.append((dict(x=uniform(rng, b, n, d)), weights | {"combine": combine}))
check("depth/dlcl", oracle, cases)
