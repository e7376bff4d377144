# RUN: %python %s heedc
"""Pires et al. 2023: three encoder layers with attention and norms of their own around one feed-forward network of width 192."""
import numpy as np
from layers import attention_weights, ffn, ffn_weights
from zoo import check, layer_norm, multi_head, norm_weights, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    for l in range(3):
        x = layer_norm(x + multi_head(x, x, weights, 4, f"layer.{l}.attention."), weights, f"layer.{l}.norm1")
        x = layer_norm(x + ffn(x, weights, "ffn"), weights, f"layer.{l}.norm2")
    return {"y": x}


rng = np.random.default_rng(206)
cases = []
for b, n, d in [(2, 7, 12), (1, 1, 4), (1, 150, 8)]:
    weights = ffn_weights(rng, "ffn", d, 192)
    for l in range(3):
        weights |= attention_weights(rng, f"layer.{l}.attention", d)
        weights |= norm_weights(rng, f"layer.{l}.norm1", d) | norm_weights(rng, f"layer.{l}.norm2", d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("ffn/shared-wide-ffn", oracle, cases)
