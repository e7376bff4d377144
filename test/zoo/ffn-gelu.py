# RUN: %python %s heedc
# RUN: %python %s heedc --set=form=tanh
"""Hendrycks and Gimpel 2016: x Phi(x), Phi by the complementary error function, or 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""
import math
import sys

import numpy as np
from zoo import check, f64, linear_weights, uniform

TANH = any("form=tanh" in a for a in sys.argv)


def gelu(x):
    if TANH:
        return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return x * math.erfc(-x / math.sqrt(2)) / 2


def oracle(inputs, weights):
    x, w1, b1, w2, b2 = f64(inputs["x"], *(weights[n] for n in ("w1.weight", "w1.bias", "w2.weight", "w2.bias")))
    h = np.einsum("bnd,fd->bnf", x, w1) + b1
    return {"y": np.einsum("bnf,df->bnd", np.vectorize(gelu)(h), w2) + b2}


rng = np.random.default_rng(202)
cases = []
for b, n, d, f, wide in [(2, 7, 5, 21, 1), (1, 1, 1, 1, 1), (1, 150, 8, 32, 4), (1, 3, 33, 130, 10)]:
    weights = linear_weights(rng, "w1", f, d) | linear_weights(rng, "w2", d, f)
    cases.append((dict(x=uniform(rng, b, n, d) * np.float32(wide)), weights))
check("ffn/ffn-gelu", oracle, cases)
