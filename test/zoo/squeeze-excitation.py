# RUN: %python %s heedc
"""Hu et al. 2018, equations 2 to 4: z_c the mean of channel c, s = sigmoid(W2 relu(W1 z)), y = s x; image by image."""
import numpy as np
from zoo import check, linear, linear_weights, uniform


def oracle(inputs, weights):
    out = []
    for x in inputs["x"].astype(np.float64):
        z = np.array([x[:, :, c].mean() for c in range(x.shape[2])])
        s = 1 / (1 + np.exp(-linear(np.maximum(linear(z, weights, "squeeze"), 0), weights, "excite")))
        out.append(x * s)
    return {"y": np.stack(out)}


rng = np.random.default_rng(703)
cases = []
for b, h, w, c in [(2, 5, 7, 9), (1, 33, 40, 16), (1, 1, 1, 1), (3, 1, 8, 4)]:
    cases.append((dict(x=uniform(rng, b, h, w, c)), linear_weights(rng, "squeeze", 4, c) | linear_weights(rng, "excite", c, 4)))
check("conv-hybrid/squeeze-excitation", oracle, cases)
