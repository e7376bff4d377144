# RUN: %python %s heedc
# RUN: %python %s heedc --set=layers=1
"""Wang et al. 2022, figure 2: x_{l+1} = LN(alpha x_l + G(x_l)); of the table there, an encoder alone of N layers: alpha = (2N)^{1/4}, which is
1.189, 1.414, 1.565, 1.682 for N = 1 .. 4."""
import sys

import numpy as np
from zoo import check, encoder_weights, feed_forward, layer_norm, multi_head, uniform

LAYERS = 1 if "--set=layers=1" in sys.argv else 3


def oracle(inputs, weights):
    alpha = np.sqrt(np.sqrt(2.0 * LAYERS))
    x = inputs["x"].astype(np.float64)
    for at in (f"layer.{l}." for l in range(LAYERS)):
        x = layer_norm(alpha * x + multi_head(x, x, weights, 4, at), weights, at + "norm1")
        x = layer_norm(alpha * x + feed_forward(x, weights, at), weights, at + "norm2")
    return {"y": x}


rng = np.random.default_rng(504)
cases = [(dict(x=uniform(rng, b, n, d)), encoder_weights(rng, LAYERS, d)) for b, n, d in [(2, 9, 16), (1, 131, 8), (3, 1, 12)]]
check("norm-residual/deepnorm", oracle, cases)
