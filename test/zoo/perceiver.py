# RUN: %python %s heedc
"""Jaegle et al. 2021, section 3: latents u attend the inputs, u + MHA(LN(u), LN(x)), then themselves, each followed by u + MLP(LN(u)); three
turns, the second and the third with the same weights."""
import math

import numpy as np
from zoo import check, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform

HEADS = 2


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def block(u, x, weights, at):
    u = u + multi_head(layer_norm(u, weights, at + ".norm_query"), layer_norm(x, weights, at + ".norm_input"), weights, HEADS, at + ".")
    h = gelu(linear(layer_norm(u, weights, at + ".mlp.norm"), weights, at + ".mlp.up"))
    return u + linear(h, weights, at + ".mlp.down")


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    u = np.repeat(weights["latents"].astype(np.float64)[None], len(x), 0)
    for stage in ("0", "1", "1"):
        u = block(u, x, weights, "cross." + stage)
        u = block(u, u, weights, "latent." + stage)
    return {"u": u}


rng = np.random.default_rng(346)
cases = []
for b, m, c, r, d in [(2, 21, 6, 5, 8), (1, 300, 4, 8, 8), (1, 1, 3, 1, 4)]:
    weights = {"latents": uniform(rng, r, d)}
    for at, width in (("cross.0", c), ("cross.1", c), ("latent.0", d), ("latent.1", d)):
        weights |= norm_weights(rng, at + ".norm_query", d) | norm_weights(rng, at + ".norm_input", width) | norm_weights(rng, at + ".mlp.norm", d)
        weights |= linear_weights(rng, at + ".query", d, d) | linear_weights(rng, at + ".key", d, width) | linear_weights(rng, at + ".value", d, width)
        for name in (".output", ".mlp.up", ".mlp.down"):
            weights |= linear_weights(rng, at + name, d, d)
    cases.append((dict(x=uniform(rng, b, m, c)), weights))
check("memory-compression/perceiver", oracle, cases)
