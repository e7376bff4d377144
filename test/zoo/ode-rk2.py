# RUN: %python %s heedc
# RUN: %python %s heedc --set=norm=post
"""Li et al. 2022; Xiao and Zhu 2023, equations 103 and 104 with figure 10: z + sum_i gamma_i g_i, g_i = f(z + sum_j beta_ij g_j), by the method's
table, for attention and the FFN of two layers; f(z) = F(LN(z)), or LN(F(z)) for norm=post."""
import sys

import numpy as np
from layers import attention_weights, ffn, ffn_weights
from zoo import check, layer_norm, multi_head, norm_weights, uniform

POST = any("norm=post" in a for a in sys.argv)
BETA = [[], [1]]
GAMMA = [1 / 2, 1 / 2]


def step(z, run, norm):
    f = (lambda y: norm(run(y))) if POST else (lambda y: run(norm(y)))
    g = []
    for row in BETA:
        g.append(f(z + sum(b * old for b, old in zip(row, g))))
    return z + sum(c * x for c, x in zip(GAMMA, g))


def oracle(inputs, weights):
    z = inputs["z"].astype(np.float64)
    for l in range(2):
        at = f"layer.{l}.attention"
        z = step(z, lambda y: multi_head(y, y, weights, 4, at + "."), lambda y: layer_norm(y, weights, at + ".norm"))
        at = f"layer.{l}.ffn"
        z = step(z, lambda y: ffn(y, weights, at), lambda y: layer_norm(y, weights, at + ".norm"))
    return {"y": z}


rng = np.random.default_rng(402)
cases = []
for b, n, d in [(2, 7, 12), (1, 1, 4), (1, 150, 8)]:
    weights = {}
    for l in range(2):
        weights |= attention_weights(rng, f"layer.{l}.attention", d) | ffn_weights(rng, f"layer.{l}.ffn", d)
        weights |= norm_weights(rng, f"layer.{l}.attention.norm", d) | norm_weights(rng, f"layer.{l}.ffn.norm", d)
    cases.append((dict(z=uniform(rng, b, n, d)), weights))
check("ode/ode-rk2", oracle, cases)
