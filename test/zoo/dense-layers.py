# RUN: %python %s heedc
# RUN: %python %s heedc --set=norm=pre
"""Xiao and Zhu 2023, equations 90 to 94: sublayers F^l (attention for odd l, FFN for even l), l = 1 .. 4, whose outputs are joined with
all earlier ones by phi, a weighted sum: post LN(phi(F(z), ...)), pre phi(LN(F(z)), ...)."""
import sys

import numpy as np
from layers import attention_weights, ffn, ffn_weights
from zoo import check, layer_norm, multi_head, norm_weights, uniform

PRE = any("norm=pre" in a for a in sys.argv)


def oracle(inputs, weights):
    phi = weights["phi"].astype(np.float64)
    z = [inputs["x"].astype(np.float64)]
    for l in range(1, 5):
        at, last = f"sublayer.{l}", z[-1]
        out = multi_head(last, last, weights, 4, at + ".") if l % 2 else ffn(last, weights, at)
        norm = lambda y: layer_norm(y, weights, at + ".norm")
        parts = z + [norm(out) if PRE else out]
        joined = np.einsum("k,kbnd->bnd", phi[l, : l + 1], np.stack(parts))
        z.append(joined if PRE else norm(joined))
    return {"y": z[-1]}


rng = np.random.default_rng(306)
cases = []
for b, n, d in [(2, 7, 12), (1, 1, 4), (1, 150, 8)]:
    weights = {"phi": uniform(rng, 5, 5) / 2 + np.float32(0.5)}
    for l in range(1, 5):
        at = f"sublayer.{l}"
        weights |= (attention_weights if l % 2 else ffn_weights)(rng, at, d) | norm_weights(rng, at + ".norm", d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("depth/dense-layers", oracle, cases)
