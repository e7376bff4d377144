# RUN: %python %s heedc
# RUN: %python %s heedc --set=heads=2 --set=rounds=1
"""Hinton et al. 2018, procedure 1, from the heads of an attention (Li et al. 2019): R = 1 / J; M: mu, sigma^2 and cost = (beta_u + log sigma) sum_i R
of each dimension, a_j = logistic(lambda (beta_a - sum cost)); E: R_ij = a_j p_ij / sum_j a_j p_ij with p the Gaussian's density. Each word alone."""
import sys

import numpy as np
from zoo import attention_weights, check, heads, linear, linear_weights, softmax, uniform

option = lambda name, default: next((int(a.split("=")[-1]) for a in sys.argv if f"{name}=" in a), default)
HEADS, ROUNDS, LAMBDA, EPS = option("heads", 4), option("rounds", 3), 0.1, 1e-4


def route(u, W, beta_u, beta_a):
    """Of one word: H head vectors u[i], W[i, j] the matrix of votes; gives J x F."""
    count, width = W.shape[1], W.shape[3]
    votes = np.array([[u[i] @ W[i, j] for j in range(count)] for i in range(HEADS)])
    R = np.full((HEADS, count), 1 / count)
    mu, var, a = np.zeros((count, width)), np.zeros((count, width)), np.zeros(count)
    for r in range(ROUNDS):
        if r > 0:
            p = np.exp(-((votes - mu) ** 2) / (2 * var)).prod(-1) / np.sqrt((2 * np.pi * var).prod(-1))
            R = a * p / (a * p).sum(1, keepdims=True)
        for j in range(count):
            total = R[:, j].sum()
            mu[j] = R[:, j] @ votes[:, j] / total
            var[j] = R[:, j] @ (votes[:, j] - mu[j]) ** 2 / total + EPS
            cost = (beta_u[j] + np.log(np.sqrt(var[j]))) * total
            a[j] = 1 / (1 + np.exp(-LAMBDA * (beta_a[j] - cost.sum())))
    return a[:, None] * mu


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    W, beta_u, beta_a = (weights[f"routing.{n}"].astype(np.float64) for n in ("weight", "beta_u", "beta_a"))
    q, k, v = (heads(linear(x, weights, f"attention.{n}"), HEADS) for n in ("query", "key", "value"))
    u = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    o = np.zeros((*x.shape[:2], W.shape[1] * W.shape[3]))
    for b, t in np.ndindex(*x.shape[:2]):
        o[b, t] = route(u[b, :, t], W, beta_u, beta_a).reshape(-1)
    return {"y": linear(o, weights, "attention.output")}


rng = np.random.default_rng(607)
cases = []
for b, n, d, j, f in [(2, 7, 12, 3, 5), (1, 1, 4, 1, 1), (1, 135, 16, 4, 4), (2, 0, 8, 2, 3), (2, 9, 36, 17, 9)]:
    weights = attention_weights(rng, "attention.", d) | linear_weights(rng, "attention.output", d, j * f)
    weights |= {"routing.weight": uniform(rng, HEADS, j, d // HEADS, f), "routing.beta_u": uniform(rng, j), "routing.beta_a": uniform(rng, j)}
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("heads/capsule-em-routing", oracle, cases)
