# RUN: %python %s heedc
"""Vaswani et al. 2017, section 3.3, as "two convolutions with kernel size 1" along the sequence, with a ReLU between."""
import numpy as np
from zoo import check, linear_weights, uniform


def convolution(x, weights, at):
    """x: N x channels; one kernel of a single tap for each pair of channels."""
    kernels = weights[f"{at}.weight"].astype(np.float64)
    out = [sum(np.convolve(x[:, c], kernel[c : c + 1]) for c in range(len(kernel))) for kernel in kernels]
    return np.stack(out, -1) + weights[f"{at}.bias"]


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    return {"y": np.array([convolution(np.maximum(convolution(r, weights, "w1"), 0), weights, "w2") for r in x])}


rng = np.random.default_rng(201)
cases = []
for b, n, d, f in [(2, 7, 5, 21), (1, 1, 1, 1), (1, 150, 8, 32), (1, 3, 33, 130)]:
    cases.append((dict(x=uniform(rng, b, n, d)), linear_weights(rng, "w1", f, d) | linear_weights(rng, "w2", d, f)))
check("ffn/ffn-relu", oracle, cases)
