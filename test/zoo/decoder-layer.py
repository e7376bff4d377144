# RUN: %python %s heedc
"""Vaswani et al. 2017, section 3.1: LN(s + F(s)) for masked self-attention, attention over the encoder's output, and the FFN."""
import numpy as np
from layers import attention_weights, below, ffn, ffn_weights
from zoo import check, f64, layer_norm, multi_head, norm_weights, uniform


def oracle(inputs, weights):
    s, h = f64(inputs["s"], inputs["h"])
    n, m = s.shape[1], h.shape[1]
    s = layer_norm(s + multi_head(s, s, weights, 4, "self.", np.tri(n, dtype=bool)), weights, "norm1")
    s = layer_norm(s + multi_head(s, h, weights, 4, "cross.", below(inputs["length"], m)), weights, "norm2")
    return {"y": layer_norm(s + ffn(s, weights, "ffn"), weights, "norm3")}


rng = np.random.default_rng(105)
cases = []
for lengths, n, m, d in [([7, 3, 0], 5, 7, 16), ([1], 1, 1, 4), ([40], 150, 40, 8), ([135, 1], 9, 140, 12)]:
    weights = attention_weights(rng, "self", d) | attention_weights(rng, "cross", d) | ffn_weights(rng, "ffn", d)
    for k in (1, 2, 3):
        weights |= norm_weights(rng, f"norm{k}", d)
    b = len(lengths)
    cases.append((dict(s=uniform(rng, b, n, d), h=uniform(rng, b, m, d), length=np.array(lengths, np.int32)), weights))
check("core/decoder-layer", oracle, cases)
