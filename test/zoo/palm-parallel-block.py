# RUN: %python %s heedc
"""Chowdhery et al. 2022, section 2: y = x + MLP(LN(x)) + Attention(LN(x)), one key and value head, rotations as complex numbers, head by head."""
import numpy as np
from zoo import check, softmax, uniform

HEADS, E = 4, 8


def turn(x):
    angle = np.arange(len(x))[:, None] * 10000.0 ** (-np.arange(0, E, 2) / E)
    z = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * angle)
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


def block(x, w):
    n = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w["norm"]
    key, value = turn(n @ w["key"].T), n @ w["value"].T
    attention = np.zeros(x.shape)
    for h in range(HEADS):
        rows = slice(h * E, (h + 1) * E)
        p = softmax(turn(n @ w["query"][rows].T) @ key.T / np.sqrt(E), np.tri(len(x), dtype=bool))
        attention += p @ value @ w["output"][:, rows].T
    gate = n @ w["gate"].T
    return x + (gate / (1 + np.exp(-gate)) * (n @ w["up"].T)) @ w["down"].T + attention


def oracle(inputs, weights):
    out = inputs["x"].astype(np.float64)
    for l in range(2):
        w = {name.split(".")[2]: a.astype(np.float64) for name, a in weights.items() if name.startswith(f"layer.{l}.")}
        out = np.stack([block(x, w) for x in out])
    return {"y": out}


rng = np.random.default_rng(116)
cases = []
for b, n, d in [(2, 9, 16), (1, 140, 12), (1, 1, 5)]:
    weights = {}
    for at in ("layer.0.", "layer.1."):
        shapes = dict(query=(HEADS * E, d), key=(E, d), value=(E, d), output=(d, HEADS * E), gate=(64, d), up=(64, d), down=(d, 64))
        weights |= {f"{at}{name}.weight": uniform(rng, *s) * np.float32(s[1] ** -0.5) for name, s in shapes.items()}
        weights[at + "norm.weight"] = uniform(rng, d) + 1
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("whole-model/palm-parallel-block", oracle, cases)
