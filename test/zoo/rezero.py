# RUN: %python %s heedc
"""Bachlechner et al. 2020: x_{i+1} = x_i + alpha_i F(x_i) without norms; alpha = 0 is the identity."""
import numpy as np
from zoo import attention_weights, check, feed_forward, feed_forward_weights, multi_head, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    for at in ("layer.0.", "layer.1."):
        alpha = float(weights[at + "resweight"])
        x = x + alpha * multi_head(x, x, weights, 4, at)
        x = x + alpha * feed_forward(x, weights, at)
    return {"y": x}


rng = np.random.default_rng(404)
cases = []
for b, n, d, alphas in [(2, 9, 16, (0.5, -0.3)), (1, 131, 8, (0.1, 1.0)), (3, 1, 12, (0.7, 0.0)), (1, 5, 8, (0.0, 0.0))]:
    weights = {f"layer.{l}.resweight": np.array(a, np.float32) for l, a in enumerate(alphas)}
    for l in range(2):
        weights |= attention_weights(rng, f"layer.{l}.", d) | feed_forward_weights(rng, f"layer.{l}.", d, 64)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("norm-residual/rezero", oracle, cases)
