# RUN: %python %s heedc
"""Ye et al. 2024, equations 1 to 3: (softmax(Q1 K1^T) - lam softmax(Q2 K2^T)) V of each head, RMS norm, (1 - lam_init)."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v, lq, lk, g = f64(*(inputs[n] for n in ("q", "k", "v", "lq", "lk", "g")))
    lam = np.exp(lq[0] @ lk[0]) - np.exp(lq[1] @ lk[1]) + 0.8
    y = np.zeros(q.shape[:1] + v.shape[1:2] + q.shape[2:3] + v.shape[3:])
    for b in range(v.shape[0]):
        for h in range(v.shape[1]):
            first, second = (softmax(q[b, c] @ k[b, c].T / np.sqrt(q.shape[-1])) for c in (2 * h, 2 * h + 1))
            o = (first - lam * second) @ v[b, h]
            y[b, h] = 0.2 * o / np.sqrt((o**2).mean(-1, keepdims=True) + 1e-5) * g
    return {"y": y}


rng = np.random.default_rng(24)
cases = []
for b, h, n, m, e, f in [(1, 2, 20, 30, 8, 8), (2, 3, 7, 9, 4, 6), (1, 1, 1, 1, 1, 1), (1, 1, 40, 70, 16, 32)]:
    inputs = dict(q=uniform(rng, b, 2 * h, n, e), k=uniform(rng, b, 2 * h, m, e), v=uniform(rng, b, h, m, f))
    cases.append((inputs | dict(lq=uniform(rng, 2, e), lk=uniform(rng, 2, e), g=uniform(rng, f)), None))
check("heads/differential-attention", oracle, cases)
