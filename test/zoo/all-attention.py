# RUN: %python %s heedc
"""Sukhbaatar et al. 2019, section 4: each query attends to the S positions before it (with a vector for the distance in the key) and
to its head's persistent pairs, in one softmax; then LN(x + W_o o). Persistent keys and values are scaled by sqrt(d_h), sqrt(U)."""
import numpy as np
from zoo import check, layer_norm, norm_weights, softmax, uniform


def oracle(inputs, weights, count=4):
    x = inputs["x"].astype(np.float64)
    b, n, d = x.shape
    e = d // count
    q, k, v = (x @ weights[f"{name}.weight"].astype(np.float64).T for name in ("query", "key", "value"))
    position, mk, mv = (weights[name].astype(np.float64) for name in ("position", "memory.key", "memory.value"))
    joined = np.zeros((b, n, d))
    for bb, h, i in np.ndindex(b, count, n):
        part = slice(h * e, (h + 1) * e)
        context = range(max(0, i - len(position)), i)
        keys = [k[bb, c, part] + position[i - c - 1] for c in context] + list(mk[h] * e**0.5)
        values = [v[bb, c, part] for c in context] + list(mv[h] * len(mv[h]) ** 0.5)
        joined[bb, i, part] = softmax(np.array(keys) @ q[bb, i, part] / e**0.5) @ np.array(values)
    return {"y": layer_norm(x + joined @ weights["output.weight"].astype(np.float64).T, weights, "norm")}


rng = np.random.default_rng(204)
cases = []
for b, n, d, s, u in [(2, 7, 12, 3, 5), (1, 1, 4, 1, 1), (1, 150, 8, 40, 3), (1, 20, 8, 64, 140)]:
    weights = {f"{name}.weight": uniform(rng, d, d) * np.float32(d**-0.5) for name in ("query", "key", "value", "output")}
    weights |= {"position": uniform(rng, s, d // 4), "memory.key": uniform(rng, 4, u, d // 4) / 2, "memory.value": uniform(rng, 4, u, d // 4)}
    cases.append((dict(x=uniform(rng, b, n, d)), weights | norm_weights(rng, "norm", d)))
check("ffn/all-attention", oracle, cases)
