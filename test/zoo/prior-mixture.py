# RUN: %python %s heedc
"""Xiao and Zhu 2023, equation 69: ((1 - beta) softmax(Q K^T / sqrt(d)) + beta softmax(-gamma G)) V, G(i, j) = |i - j|."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    beta, n = inputs.get("beta", 0.5), q.shape[2]
    o = (1 - beta) * (softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v)
    for i in range(n):
        e = [np.exp(-inputs.get("gamma", 1) * abs(i - j)) for j in range(n)]
        total = sum(e)
        for j in range(n):
            o[:, :, i] += beta * e[j] / total * v[:, :, j]
    return {"o": o}


rng = np.random.default_rng(210)
cases = []
for b, h, n, e, f in [(1, 2, 150, 8, 8), (2, 3, 19, 16, 5), (1, 1, 1, 4, 4)]:
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f))
    cases += [(inputs, None), (inputs | dict(beta=0.9, gamma=0.01), None), (inputs | dict(beta=0.0), None), (inputs | dict(beta=1.0), None)]
check("prior/prior-mixture", oracle, cases)
