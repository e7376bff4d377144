# RUN: %python %s heedc
"""Srivastava et al. 2015, equation 3: y = H(x) T(x, W_T) + x (1 - T(x, W_T)), token by token, H a sublayer; LN after it. One case has gates that
are shut (T = 0: the layer is LN alone), one gates that are open."""
import numpy as np
from zoo import check, encoder_weights, feed_forward, layer_norm, linear_weights, multi_head, uniform


def highway(x, h, weights, at):
    w, b = weights[at + ".gate.weight"].astype(np.float64), weights[at + ".gate.bias"]
    out = np.empty(x.shape)
    for at in np.ndindex(*x.shape[:2]):
        t = 1 / (1 + np.exp(-(w @ x[at] + b)))
        out[at] = h[at] * t + x[at] * (1 - t)
    return out


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    for at in ("layer.0.", "layer.1."):
        x = layer_norm(highway(x, multi_head(x, x, weights, 4, at), weights, at + "norm1"), weights, at + "norm1")
        x = layer_norm(highway(x, feed_forward(x, weights, at), weights, at + "norm2"), weights, at + "norm2")
    return {"y": x}


rng = np.random.default_rng(501)
cases = []
for b, n, d, bias in [(2, 9, 16, 0), (1, 131, 8, 0), (3, 1, 12, 0), (1, 5, 8, -200), (1, 5, 8, 200)]:
    weights = encoder_weights(rng, 2, d)
    for at in (f"layer.{l}.norm{k}.gate" for l in range(2) for k in (1, 2)):
        weights |= linear_weights(rng, at, d, d)
        weights[at + ".bias"] += np.float32(bias)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("norm-residual/highway-residual", oracle, cases)
