# RUN: %python %s heedc
"""Xiao and Zhu 2023, equation 81: z^l = LNorm(F^l(z^{l-1}) + beta z^{l-1}) + gamma z^{l-1}, also for the two corners: post-norm
(beta 1, gamma 0) and the normed output (beta 0, gamma 1), each written out without the factors."""
import numpy as np
from zoo import check, encoder_weights, feed_forward, layer_norm, multi_head, uniform


def oracle(inputs, weights):
    z, beta, gamma = inputs["z"].astype(np.float64), inputs.get("beta", 1.0), inputs.get("gamma", 0.5)
    for l in range(2):
        at = f"layer.{l}."
        for f, norm in ((lambda z: multi_head(z, z, weights, 4, at), "norm1"), (lambda z: feed_forward(z, weights, at), "norm2")):
            if (beta, gamma) == (1, 0):
                z = layer_norm(z + f(z), weights, at + norm)
            elif (beta, gamma) == (0, 1):
                z = z + layer_norm(f(z), weights, at + norm)
            else:
                z = layer_norm(f(z) + beta * z, weights, at + norm) + gamma * z
    return {"y": z}


rng = np.random.default_rng(403)
cases = []
for b, n, d, factors in [(2, 9, 16, {}), (1, 131, 8, dict(beta=0.25, gamma=-1.5)), (2, 7, 8, dict(beta=1.0, gamma=0.0)),
                         (3, 1, 12, dict(beta=0.0, gamma=1.0))]:
    cases.append((dict(z=uniform(rng, b, n, d)) | factors, encoder_weights(rng, 2, d)))
check("norm-residual/weighted-residual", oracle, cases)
