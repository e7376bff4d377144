# RUN: %python %s heedc
"""Vaswani et al. 2017, section 3.2.3: keys and values from the encoder's output, its padding masked."""
import numpy as np
from zoo import check, linear_weights, multi_head, uniform


def oracle(inputs, weights):
    m = inputs["memory"].shape[1]
    live = (np.arange(m) < inputs["length"][:, None])[:, None, None, :]
    return {"y": multi_head(inputs["x"].astype(np.float64), inputs["memory"].astype(np.float64), weights, 4, live=live)}


rng = np.random.default_rng(5)
cases = []
for lengths, n, m, d, c in [([7, 3], 5, 7, 16, 12), ([0, 40], 33, 40, 32, 32)]:
    weights = linear_weights(rng, "query", d, d) | linear_weights(rng, "key", d, c) | linear_weights(rng, "value", d, c)
    weights |= linear_weights(rng, "output", d, d)
    b = len(lengths)
    cases.append((dict(x=uniform(rng, b, n, d), memory=uniform(rng, b, m, c), length=np.array(lengths, np.int32)), weights))
check("core/cross-attention", oracle, cases)
