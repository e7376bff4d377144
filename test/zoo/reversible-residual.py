# RUN: %python %s heedc
# RUN: %python %s heedc --model=inverse
"""Gomez et al. 2017, equation 6; Kitaev et al. 2020, equation 9: y1 = x1 + Att(LN x2), y2 = x2 + FFN(LN y1). The inverse is given the float64
outputs of the forward pass, rounded, and must give their inputs."""
import sys

import numpy as np
from zoo import check, encoder_weights, feed_forward, layer_norm, multi_head, uniform


def forward(x1, x2, weights):
    x1, x2 = x1.astype(np.float64), x2.astype(np.float64)
    for at in ("layer.0.", "layer.1."):
        h = layer_norm(x2, weights, at + "norm1")
        x1 = x1 + multi_head(h, h, weights, 4, at)
        x2 = x2 + feed_forward(layer_norm(x1, weights, at + "norm2"), weights, at)
    return x1, x2


rng = np.random.default_rng(407)
cases, answers = [], []
for b, n, d in [(2, 9, 16), (1, 131, 8), (3, 1, 12)]:
    x1, x2, weights = uniform(rng, b, n, d), uniform(rng, b, n, d), encoder_weights(rng, 2, d)
    y1, y2 = forward(x1, x2, weights)
    if "--model=inverse" in sys.argv:
        cases.append((dict(y1=y1.astype(np.float32), y2=y2.astype(np.float32)), weights))
        answers.append(dict(x1=x1.astype(np.float64), x2=x2.astype(np.float64)))
    else:
        cases.append((dict(x1=x1, x2=x2), weights))
        answers.append(dict(y1=y1, y2=y2))
upcoming = iter(answers)
check("norm-residual/reversible-residual", lambda inputs, weights: next(upcoming), cases)
