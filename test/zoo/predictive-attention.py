# RUN: %python %s heedc
# RUN: %python %s heedc --set=alpha=0.125
"""Lin et al. 2022, section 4.5.3, of Wang et al. 2021: A^l <- alpha A^l + (1 - alpha) Conv(A^(l-1)) before the softmax, the convolution over the H maps of
n x n with zero padding. Nine shifted copies of the padded maps. Post-norm layers."""
import sys
import numpy as np
from zoo import check, encoder_weights, feed_forward, heads, layer_norm, linear, merge, softmax, uniform

ALPHA = 0.125 if "--set=alpha=0.125" in sys.argv else 0.5


def oracle(inputs, weights):
    x, n, below = inputs["x"].astype(np.float64), inputs["x"].shape[1], None
    for at in ("layer.0.", "layer.1."):
        q, k, v = (heads(linear(x, weights, at + name), 4) for name in ("query", "key", "value"))
        A = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])
        if below is not None:
            w = weights[at + "conv.weight"].astype(np.float64)
            padded = np.pad(below, ((0, 0), (0, 0), (1, 1), (1, 1)))
            conv = sum(np.tensordot(w[:, :, u, t], padded[:, :, u:u + n, t:t + n], (1, 1)).swapaxes(0, 1) for u in range(3) for t in range(3))
            A = ALPHA * A + (1 - ALPHA) * (conv + weights[at + "conv.bias"][:, None, None])
        below = A
        x = layer_norm(x + linear(merge(softmax(A) @ v), weights, at + "output"), weights, at + "norm1")
        x = layer_norm(x + feed_forward(x, weights, at), weights, at + "norm2")
    return {"y": x}


rng = np.random.default_rng(419)
cases = []
for b, n, d in [(2, 9, 16), (1, 135, 8), (1, 1, 12), (3, 2, 4)]:
    weights = encoder_weights(rng, 2, d) | {"layer.1.conv.weight": uniform(rng, 4, 4, 3, 3) / 3, "layer.1.conv.bias": uniform(rng, 4)}
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("prior/predictive-attention", oracle, cases)
