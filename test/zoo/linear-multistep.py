# RUN: %python %s heedc
# RUN: %python %s heedc --set=norm=post --set=p=3
"""Xiao and Zhu 2023, equation 101 with f at the last p points: z(l) = sum_i a_i z(l-i) + h sum_i b_i f(z(l-i), l-i+1), attention and FFN in turn.
One case is the method of Adams and Bashforth (a = 1, 0; b = 3/2, -1/2, started by Euler's) with another h. Coefficients of states that are not
there yet (NaN here) are not read."""
import sys

import numpy as np
from layers import attention_weights, ffn, ffn_weights
from zoo import check, layer_norm, multi_head, norm_weights, uniform

POST = "--set=norm=post" in sys.argv
P = 3 if "--set=p=3" in sys.argv else 2


def f(z, number, weights):
    at = f"sublayer.{number}"
    run = (lambda y: ffn(y, weights, at)) if number % 2 else (lambda y: multi_head(y, y, weights, 4, at + "."))
    return layer_norm(run(z), weights, at + ".norm") if POST else run(layer_norm(z, weights, at + ".norm"))


def oracle(inputs, weights):
    z, h = [inputs["z"].astype(np.float64)], inputs.get("h", 1.0)
    a, b = weights["multistep.a"].astype(np.float64), weights["multistep.b"].astype(np.float64)
    for l in range(1, 5):
        new = 0
        for i in range(1, P + 1):
            if l - i >= 0:
                new = new + a[l - 1, i - 1] * z[l - i] + h * b[l - 1, i - 1] * f(z[l - i], l - i, weights)
        z.append(new)
    return {"y": z[4]}


rng = np.random.default_rng(516)
cases = []
for b, n, d, given in [(2, 7, 12, {}), (1, 1, 4, {"h": 0.5}), (1, 150, 8, {}), (1, 5, 8, {"h": 0.25})]:
    weights = {}
    for l in range(4):
        at = f"sublayer.{l}"
        weights |= (ffn_weights(rng, at, d) if l % 2 else attention_weights(rng, at, d)) | norm_weights(rng, at + ".norm", d)
    ca, cb = uniform(rng, 4, P), uniform(rng, 4, P)
    ca[:, 0] += 1
    if n == 5:
        ca[:], cb[:] = np.eye(P)[0], np.array([1.5, -0.5, 0])[:P]
        cb[0, 0] = 1
    ca[np.triu_indices(4, 1, P)] = cb[np.triu_indices(4, 1, P)] = np.nan
    cases.append((dict(z=uniform(rng, b, n, d)) | given, weights | {"multistep.a": ca, "multistep.b": cb}))
check("ode/linear-multistep", oracle, cases)
