# RUN: %python %s heedc
"""Liu et al. 2020, section 4: x_{l+1} = LN(x_l * omega_{l+1} + F(x_l)), omega one number for each channel of each sublayer."""
import numpy as np
from zoo import check, encoder_weights, feed_forward, layer_norm, multi_head, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    for at in ("layer.0.", "layer.1."):
        x = layer_norm(x @ np.diag(weights[at + "norm1.omega"].astype(np.float64)) + multi_head(x, x, weights, 4, at), weights, at + "norm1")
        x = layer_norm(x @ np.diag(weights[at + "norm2.omega"].astype(np.float64)) + feed_forward(x, weights, at), weights, at + "norm2")
    return {"y": x}


rng = np.random.default_rng(405)
cases = []
for b, n, d in [(2, 9, 16), (1, 131, 8), (3, 1, 12)]:
    weights = encoder_weights(rng, 2, d)
    weights |= {f"layer.{l}.norm{k}.omega": 1.5 + uniform(rng, d) for l in range(2) for k in (1, 2)}
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("norm-residual/admin", oracle, cases)
