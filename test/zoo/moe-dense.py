# RUN: %python %s heedc
"""Shazeer et al. 2017, equations 1 and 2: y = sum_i G(x)_i E_i(x), G(x) = softmax(x W_g), experts with one ReLU layer; row by row. One
expert alone is a plain feed-forward layer."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    x, wg, w1, b1, w2, b2 = f64(inputs["h"], *(weights[n] for n in ("gate.weight", "experts.up.weight", "experts.up.bias",
                                                                    "experts.down.weight", "experts.down.bias")))
    y = np.zeros(x.shape)
    for at in np.ndindex(*x.shape[:2]):
        for i, g in enumerate(softmax(wg @ x[at])):
            y[at] += g * (w2[i] @ np.maximum(w1[i] @ x[at] + b1[i], 0) + b2[i])
    return {"y": y}


rng = np.random.default_rng(501)
cases = []
for b, n, d, m, a in [(2, 9, 16, 4, 24), (1, 131, 8, 3, 5), (2, 5, 7, 1, 9), (1, 1, 1, 2, 1)]:
    weights = {"gate.weight": uniform(rng, m, d), "experts.up.weight": uniform(rng, m, a, d), "experts.up.bias": uniform(rng, m, a),
               "experts.down.weight": uniform(rng, m, d, a), "experts.down.bias": uniform(rng, m, d)}
    cases.append((dict(h=uniform(rng, b, n, d)), weights))
check("moe-conditional/moe-dense", oracle, cases)
