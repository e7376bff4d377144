# RUN: %python %s heedc
"""Yang et al. 2020: a decoder of two layers whose sublayers are masked self-attention and attention over the encoder's output."""
import numpy as np
from layers import attention_weights, below
from zoo import check, f64, layer_norm, multi_head, norm_weights, uniform


def oracle(inputs, weights):
    s, h = f64(inputs["s"], inputs["h"])
    past, real = np.tri(s.shape[1], dtype=bool), below(inputs["length"], h.shape[1])
    for l in range(2):
        s = layer_norm(s + multi_head(s, s, weights, 4, f"layer.{l}.self.", past), weights, f"layer.{l}.norm1")
        s = layer_norm(s + multi_head(s, h, weights, 4, f"layer.{l}.cross.", real), weights, f"layer.{l}.norm2")
    return {"y": s}


rng = np.random.default_rng(205)
cases = []
for lengths, n, m, d in [([7, 3, 0], 5, 7, 16), ([1], 1, 1, 4), ([40], 150, 40, 8), ([135, 1], 9, 140, 12)]:
    weights = {}
    for l in range(2):
        for name in ("self", "cross"):
            weights |= attention_weights(rng, f"layer.{l}.{name}", d)
        weights |= norm_weights(rng, f"layer.{l}.norm1", d) | norm_weights(rng, f"layer.{l}.norm2", d)
    b = len(lengths)
    cases.append((dict(s=uniform(rng, b, n, d), h=uniform(rng, b, m, d), length=np.array(lengths, np.int32)), weights))
check("ffn/no-ffn-decoder", oracle, cases)
