# RUN: %python %s heedc
"""Vaswani et al. 2017, section 3.2.2, in the sum form: y = sum_h softmax(Q_h K_h^T / sqrt(d)) V_h W^O_h."""
import numpy as np
from zoo import check, linear, linear_weights, softmax, uniform


def oracle(inputs, weights, count=4):
    x = inputs["x"].astype(np.float64)
    q, k, v = (linear(x, weights, n) for n in ("query", "key", "value"))
    e = x.shape[-1] // count
    out = np.zeros(x.shape) + weights["output.bias"]
    for h in range(count):
        part = slice(h * e, (h + 1) * e)
        a = softmax(q[..., part] @ k[..., part].swapaxes(-1, -2) / np.sqrt(e))
        out += a @ v[..., part] @ weights["output.weight"][:, part].astype(np.float64).T
    return {"y": out}


rng = np.random.default_rng(4)
cases = []
for b, n, d in [(2, 7, 16), (1, 50, 64), (1, 1, 4)]:
    weights = {}
    for name in ("query", "key", "value", "output"):
        weights |= linear_weights(rng, name, d, d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("core/mha", oracle, cases)
