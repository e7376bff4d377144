# RUN: %python %s heedc
"""Voita et al. 2019, section 6; Michel et al. 2019: sum_h g_h head_h W^O_h over all heads, most gates 0. The oracle has all heads of each
layer; the model's checkpoint has those whose gate is not 0. A layer may keep none."""
import numpy as np
from zoo import check, f64, layer_norm, norm_weights, softmax, uniform

rng = np.random.default_rng(307)
whole = []


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    for l, layer in enumerate(whole.pop(0)):
        wq, wk, wv, wo, gates = f64(*(layer[n] for n in ("query", "key", "value", "output", "gate")))
        a = np.zeros(x.shape)
        for h, g in enumerate(gates):
            scores = (x @ wq[h].T) @ (x @ wk[h].T).swapaxes(-1, -2) / np.sqrt(wq.shape[1])
            a += g * (softmax(scores) @ (x @ wv[h].T) @ wo[:, h].T)
        x = layer_norm(x + a, weights, f"layer.{l}.norm")
    return {"y": x}


cases = []
for b, n, d, e, gates in [(2, 9, 16, 4, [[1, 0, 1, 0.5], [0, 0, 1, 0], [1, 1, 1, 1]]), (1, 131, 8, 3, [[0, 1], [0.25, 1], [1, 0]]),
                          (3, 1, 4, 2, [[1, 1], [0, 0], [0, 1]])]:
    weights, layers = {}, []
    for l, gate in enumerate(np.array(gates, np.float32)):
        layer = {name: uniform(rng, len(gate), e, d) / np.float32(d**0.5) for name in ("query", "key", "value")}
        layer |= {"output": uniform(rng, d, len(gate), e), "gate": gate}
        weights |= {f"layer.{l}.{name}.weight": layer[name][gate != 0] for name in ("query", "key", "value")}
        weights |= {f"layer.{l}.output.weight": np.ascontiguousarray(layer["output"][:, gate != 0]), f"layer.{l}.gate": gate[gate != 0]}
        weights |= norm_weights(rng, f"layer.{l}.norm", d)
        layers.append(layer)
    whole.append(layers)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("heads/head-pruning", oracle, cases)
