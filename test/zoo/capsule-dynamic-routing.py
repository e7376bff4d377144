# RUN: %python %s heedc
# RUN: %python %s heedc --set=heads=2 --set=rounds=1
"""Sabour et al. 2017, procedure 1, from the heads of an attention (Gu and Feng 2019): b = 0; c_i = softmax(b_i), s_j = sum_i c_ij V_ij, v_j = |s_j|^2
/ (1 + |s_j|^2) s_j / |s_j|, b_ij += V_ij . v_j, three times; of each word alone."""
import sys

import numpy as np
from zoo import attention_weights, check, heads, linear, linear_weights, softmax, uniform

option = lambda name, default: next((int(a.split("=")[-1]) for a in sys.argv if f"{name}=" in a), default)
HEADS, ROUNDS = option("heads", 4), option("rounds", 3)


def route(u, W):
    """Of one word: H head vectors u[i], W[i, j] the matrix of votes; gives J x F."""
    count = W.shape[1]
    votes = np.array([[u[i] @ W[i, j] for j in range(count)] for i in range(HEADS)])
    b = np.zeros((HEADS, count))
    for _ in range(ROUNDS):
        c = softmax(b)
        s = [sum(c[i, j] * votes[i, j] for i in range(HEADS)) for j in range(count)]
        v = [y @ y / (1 + y @ y) * y / np.linalg.norm(y) for y in s]
        b = b + np.array([[votes[i, j] @ v[j] for j in range(count)] for i in range(HEADS)])
    return np.array(v)


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    W = weights["routing.weight"].astype(np.float64)
    q, k, v = (heads(linear(x, weights, f"attention.{n}"), HEADS) for n in ("query", "key", "value"))
    u = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    o = np.zeros((*x.shape[:2], W.shape[1] * W.shape[3]))
    for b, t in np.ndindex(*x.shape[:2]):
        o[b, t] = route(u[b, :, t], W).reshape(-1)
    return {"y": linear(o, weights, "attention.output")}


rng = np.random.default_rng(606)
cases = []
for b, n, d, j, f in [(2, 7, 12, 3, 5), (1, 1, 4, 1, 1), (1, 135, 16, 4, 4), (2, 0, 8, 2, 3), (2, 9, 36, 17, 9)]:
    weights = attention_weights(rng, "attention.", d) | linear_weights(rng, "attention.output", d, j * f)
    cases.append((dict(x=uniform(rng, b, n, d)), weights | {"routing.weight": 2 * uniform(rng, HEADS, j, d // HEADS, f)}))
check("heads/capsule-dynamic-routing", oracle, cases)
