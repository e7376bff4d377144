# RUN: %python %s heedc
"""Lee-Thorp et al. 2021, section 3: the real part of the transform over hidden dim and positions, by NumPy's FFT; post-norm, FFN with GELU, two layers."""
import math

import numpy as np
from zoo import check, feed_forward_weights, layer_norm, linear, norm_weights, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    for at in ("layer.0.", "layer.1."):
        x = layer_norm(x + np.fft.fft2(x, axes=(1, 2)).real, weights, at + "norm1")
        u = linear(x, weights, at + "up")
        x = layer_norm(x + linear(u * (1 + np.vectorize(math.erf, otypes=[float])(u / math.sqrt(2))) / 2, weights, at + "down"), weights, at + "norm2")
    return {"y": x}


rng = np.random.default_rng(702)
cases = []
for b, n, d in [(2, 9, 8), (1, 140, 12), (1, 1, 4), (1, 37, 7)]:
    weights = {}
    for at in ("layer.0.", "layer.1."):
        weights |= feed_forward_weights(rng, at, d, 32) | norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("prior/fnet", oracle, cases)
