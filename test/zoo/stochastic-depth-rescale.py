# RUN: %python %s heedc
# RUN: %python %s heedc --set=pre=true
"""Xiao and Zhu 2023, equation 95 (Li et al. 2021): z^l = rho LNorm(F(z^{l-1})) + z^{l-1}, rho = 0.8, folded into the norm's gain and bias here.
With `pre` z^l = rho F(LNorm(z^{l-1})) + z^{l-1}, rho folded into F's last matrix."""
import sys

import numpy as np
from zoo import check, encoder_weights, feed_forward, layer_norm, multi_head, uniform

PRE = "--set=pre=true" in sys.argv


def oracle(inputs, weights, rho=0.8):
    z = inputs["x"].astype(np.float64)
    last = ("output", "down") if PRE else ("norm1", "norm2")
    folded = {name: rho * w.astype(np.float64) if name.split(".")[2] in last else w for name, w in weights.items()}
    for at in ("layer.0.", "layer.1."):
        for norm, f in (("norm1", lambda h: multi_head(h, h, folded, 4, at)), ("norm2", lambda h: feed_forward(h, folded, at))):
            z = z + (f(layer_norm(z, weights, at + norm)) if PRE else layer_norm(f(z), folded, at + norm))
    return {"y": z}


rng = np.random.default_rng(406)
cases = [(dict(x=uniform(rng, b, n, d)), encoder_weights(rng, 2, d)) for b, n, d in [(2, 9, 16), (1, 131, 8), (3, 1, 12)]]
check("norm-residual/stochastic-depth-rescale", oracle, cases)
