# RUN: %python %s heedc
"""Wu et al. 2020, section 4: the first half of the channels through self-attention, the second through linear + GLU, lightweight convolution
(np.convolve for each channel) and linear; joined, x + both, norm, flat feed-forward, norm. Two layers."""
import numpy as np
from zoo import (attention_weights, check, feed_forward, feed_forward_weights, layer_norm, linear, linear_weights, multi_head, norm_weights,
                 softmax, uniform)

HEADS = 2


def branch(x, weights, at):
    a, gate = np.split(linear(x, weights, at + "input"), 2, axis=-1)
    a = a / (1 + np.exp(-gate))
    taps = softmax(weights[at + "conv.weight"])
    y = np.empty(a.shape)
    for b, c in np.ndindex(a.shape[0], a.shape[2]):
        t = taps[c * len(taps) // a.shape[2]]
        after = len(t) - 1 - len(t) // 2
        y[b, :, c] = np.convolve(a[b, :, c], t[::-1])[after:after + a.shape[1]]
    return linear(y, weights, at + "output")


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    for at in ("layer.0.", "layer.1."):
        left, right = np.split(x, 2, axis=-1)
        long = multi_head(left, left, weights, HEADS, at + "attention.")
        x = layer_norm(x + np.concatenate([long, branch(right, weights, at + "branch.")], -1), weights, at + "norm1")
        x = layer_norm(x + feed_forward(x, weights, at), weights, at + "norm2")
    return {"y": x}


rng = np.random.default_rng(605)
cases = []
for b, n, d, kernels in [(2, 9, 16, (3, 5)), (1, 131, 8, (7, 2)), (1, 4, 12, (9, 1)), (3, 1, 4, (3, 3))]:
    weights = {}
    for l, k in enumerate(kernels):
        at = f"layer.{l}."
        weights |= attention_weights(rng, at + "attention.", d // 2) | feed_forward_weights(rng, at, d, d)
        weights |= linear_weights(rng, at + "branch.input", d, d // 2) | linear_weights(rng, at + "branch.output", d // 2, d // 2)
        weights |= {at + "branch.conv.weight": uniform(rng, 2, k)} | norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("conv-hybrid/lite-transformer", oracle, cases)
