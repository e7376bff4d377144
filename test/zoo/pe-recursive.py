# RUN: %python %s heedc
# RUN: %python %s heedc --set=hidden=3
"""Liu et al. 2020, section 3: p_0 given, p_(t+1) = f(p_t) = W2 tanh(W1 p_t + b1) + b2 by a loop; y_t = x_t + p_t, of any length."""
import sys

import numpy as np
from zoo import check, linear, linear_weights, uniform

HIDDEN = next((int(a.split("=")[-1]) for a in sys.argv if "hidden=" in a), 16)


def oracle(inputs, weights):
    y = inputs["x"].astype(np.float64)
    p = weights["position.first"].astype(np.float64)
    for t in range(y.shape[1]):
        y[:, t] += p
        p = linear(np.tanh(linear(p, weights, "position.up")), weights, "position.down")
    return {"y": y}


rng = np.random.default_rng(616)
cases = []
for b, n, d in [(2, 7, 5), (1, 1, 1), (3, 40, 33), (1, 200, 16), (2, 0, 4)]:
    weights = {"position.first": uniform(rng, d)} | linear_weights(rng, "position.up", HIDDEN, d)
    weights |= linear_weights(rng, "position.down", d, HIDDEN)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("position/pe-recursive", oracle, cases)
