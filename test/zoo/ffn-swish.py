# RUN: %python %s heedc
# RUN: %python %s heedc --set=beta=-1.75
# RUN: %python %s heedc --set=trained=true
"""Ramachandran et al. 2018, section 4: x sigmoid(beta x) between two linears, beta a constant (1 by default) or trained."""
import sys

import numpy as np
from zoo import check, f64, linear_weights, uniform

TRAINED = any("trained=true" in a for a in sys.argv)
BETA = next((float(a.split("=")[-1]) for a in sys.argv if "beta=" in a), 1.0)


def oracle(inputs, weights):
    x, w1, b1, w2, b2 = f64(inputs["x"], *(weights[n] for n in ("w1.weight", "w1.bias", "w2.weight", "w2.bias")))
    h = np.einsum("bnd,fd->bnf", x, w1) + b1
    beta = float(weights["beta"]) if TRAINED else BETA
    return {"y": np.einsum("bnf,df->bnd", h * (np.tanh(beta * h / 2) + 1) / 2, w2) + b2}


rng = np.random.default_rng(203)
cases = []
for b, n, d, f, beta in [(2, 7, 5, 21, 0.3), (1, 1, 1, 1, 2.0), (1, 150, 8, 32, -1.5), (1, 3, 33, 130, 0.0)]:
    weights = linear_weights(rng, "w1", f, d) | linear_weights(rng, "w2", d, f)
    if TRAINED:
        weights["beta"] = np.array(beta, np.float32)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("ffn/ffn-swish", oracle, cases)
