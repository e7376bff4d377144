# RUN: %python %s heedc
# RUN: %python %s heedc --set=cell=rnn
# RUN: %python %s heedc --set=cell=lstm
"""Xiao and Zhu 2023, equations 127 and 128: memories k_i = KMem(k_(i-1), k), v_i = VMem(v_(i-1), v) of the pairs before word i, by a weighted sum (by
default), an RNN or an LSTM. Each query attends to its own pair and, from the second word on, to the memory's."""
import sys

import numpy as np
from zoo import check, f64, linear, linear_weights, uniform

CELL = next((a.split("=")[-1] for a in sys.argv if "cell=" in a), "sum")
HEADS = 2
sigmoid = lambda x: 1 / (1 + np.exp(-x))


def memory(rows, weights, at):
    """What the memory of one sentence holds before each of its words."""
    m = c = np.zeros(rows.shape[1])
    before = []
    for row in rows:
        before.append(m)
        if CELL == "sum":
            a = weights[f"{at}.decay"].astype(np.float64)
            m = a * m + (1 - a) * row
        elif CELL == "rnn":
            m = np.tanh(linear(m, weights, f"{at}.state") + weights[f"{at}.input.weight"].astype(np.float64) @ row)
        else:
            w, u, bias = f64(*(weights[f"{at}.{n}"] for n in ("weight_ih", "weight_hh", "bias")))
            i, f, g, o = np.split(w @ row + u @ m + bias, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            m = sigmoid(o) * np.tanh(c)
    return before


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    q, k, v = (linear(x, weights, n) for n in ("query", "key", "value"))
    e = x.shape[2] // HEADS
    o = np.zeros(x.shape)
    for b in range(len(x)):
        mk, mv = memory(k[b], weights, "kmem"), memory(v[b], weights, "vmem")
        for i in range(x.shape[1]):
            pairs = ([(mk[i], mv[i])] if i else []) + [(k[b, i], v[b, i])]
            for h in range(HEADS):
                at = slice(h * e, h * e + e)
                p = np.exp([q[b, i, at] @ key[at] / np.sqrt(e) for key, _ in pairs])
                o[b, i, at] = sum(w * value[at] for w, (_, value) in zip(p / p.sum(), pairs))
    return {"y": linear(o, weights, "output")}


rng = np.random.default_rng(412)
cases = []
for b, n, d in [(2, 7, 12), (1, 1, 2), (3, 40, 34), (1, 150, 16), (2, 0, 4)]:
    weights = {k: w for name in ("query", "key", "value", "output") for k, w in linear_weights(rng, name, d, d).items()}
    for at in ("kmem", "vmem"):
        if CELL == "sum":
            weights[f"{at}.decay"] = np.abs(uniform(rng, d))
            # Memories of the last pair alone, of nothing, and of the last but for e^-200.
            weights[f"{at}.decay"][:3] = [0, 1, np.exp(-200.0)][:d]
        elif CELL == "rnn":
            weights |= {f"{at}.state.weight": uniform(rng, d, d) / np.float32(d), f"{at}.state.bias": uniform(rng, d), f"{at}.input.weight": uniform(rng, d, d)}
        else:
            weights |= {f"{at}.weight_ih": uniform(rng, 4 * d, d), f"{at}.weight_hh": uniform(rng, 4 * d, d) / np.float32(d), f"{at}.bias": uniform(rng, 4 * d)}
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("recurrence/recursive-kv-memory", oracle, cases)
