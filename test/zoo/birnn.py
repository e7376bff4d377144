# RUN: %python %s heedc
"""Schuster and Paliwal 1997; Bahdanau et al. 2015, appendix A.2.1: h_i = [->h_i; <-h_i] of gated units that read each sentence, cut to its length, from its
first word and from its last one. Padding gives zeros."""
import numpy as np
from zoo import check, f64, uniform

E = 12
sigmoid = lambda x: 1 / (1 + np.exp(-x))


def read(words, weights, at):
    w, u, bias = f64(*(weights[f"{at}.{n}"] for n in ("weight_ih", "weight_hh", "bias")))
    h, states = np.zeros(E), []
    for word in words:
        a = w @ word + bias
        r, z = sigmoid(a[:E] + u[:E] @ h), sigmoid(a[E:2 * E] + u[E:2 * E] @ h)
        h = (1 - z) * h + z * np.tanh(a[2 * E:] + u[2 * E:] @ (r * h))
        states.append(h)
    return states


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    y = np.zeros((*x.shape[:2], 2 * E))
    for b, length in enumerate(inputs["length"]):
        if length:
            words = x[b, :length]
            y[b, :length] = np.concatenate([read(words, weights, "forward"), read(words[::-1], weights, "backward")[::-1]], 1)
    return {"y": y}


rng = np.random.default_rng(404)
cases = []
for lengths, n, d in [([5, 3], 5, 4), ([1], 1, 1), ([0, 9, 4], 9, 33), ([150], 150, 16), ([17, 140], 140, 7), ([0, 0], 0, 3)]:
    weights = {}
    for at in ("forward", "backward"):
        weights |= {f"{at}.weight_ih": uniform(rng, 3 * E, d), f"{at}.weight_hh": uniform(rng, 3 * E, E) / np.float32(E), f"{at}.bias": uniform(rng, 3 * E)}
    cases.append((dict(x=uniform(rng, len(lengths), n, d), length=np.array(lengths, np.int32)), weights))
check("recurrence/birnn", oracle, cases)
