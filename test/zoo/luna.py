# RUN: %python %s heedc
"""Ma et al. 2021, section 3: Y_P = Attn(P, X), Y_X = Attn(X, Y_P); P = LN(Y_P + P); X = LN(Y_X + X), X = LN(FFN(X) + X). Two layers."""
import numpy as np
from zoo import check, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    p = np.repeat(weights["P"].astype(np.float64)[None], len(x), 0)
    for l in range(2):
        at = f"layer.{l}."
        packed = multi_head(p, x, weights, 2, at + "pack.")
        unpacked = multi_head(x, packed, weights, 2, at + "unpack.")
        p = layer_norm(packed + p, weights, at + "norm_p")
        x = layer_norm(unpacked + x, weights, at + "norm_x")
        x = layer_norm(linear(np.maximum(linear(x, weights, at + "up"), 0), weights, at + "down") + x, weights, at + "norm")
    return {"x": x, "p": p}


rng = np.random.default_rng(344)
cases = []
for b, n, d in [(2, 11, 8), (1, 150, 8), (1, 1, 4)]:
    weights = {"P": uniform(rng, 4, d)}
    for l in range(2):
        at = f"layer.{l}."
        for name in ("query", "key", "value", "output"):
            weights |= linear_weights(rng, at + "pack." + name, d, d) | linear_weights(rng, at + "unpack." + name, d, d)
        weights |= linear_weights(rng, at + "up", 32, d) | linear_weights(rng, at + "down", d, 32)
        for name in ("norm_p", "norm_x", "norm"):
            weights |= norm_weights(rng, at + name, d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("memory-compression/luna", oracle, cases)
