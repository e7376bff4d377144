# RUN: %python %s heedc
"""Xiao and Zhu 2023, equation 95 (Li et al. 2021): z^l = rho LNorm(F(z^{l-1})) + z^{l-1}, with rho = 0.8 folded into the norm's gain
and bias here."""
import numpy as np
from zoo import check, encoder_weights, feed_forward, layer_norm, multi_head, uniform


def oracle(inputs, weights, rho=0.8):
    z = inputs["x"].astype(np.float64)
    folded = {name: rho * w.astype(np.float64) if "norm" in name else w for name, w in weights.items()}
    for at in ("layer.0.", "layer.1."):
        z = z + layer_norm(multi_head(z, z, weights, 4, at), folded, at + "norm1")
        z = z + layer_norm(feed_forward(z, weights, at), folded, at + "norm2")
    return {"y": z}


rng = np.random.default_rng(406)
cases = [(dict(x=uniform(rng, b, n, d)), encoder_weights(rng, 2, d)) for b, n, d in [(2, 9, 16), (1, 131, 8), (3, 1, 12)]]
check("norm-residual/stochastic-depth-rescale", oracle, cases)
