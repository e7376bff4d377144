# RUN: %python %s heedc
"""Wang et al. 2019, section 3: absolute positions tanh(W [PE(place); PE(depth)] + b) added to the words; relative ones by the paper's
rules, on pairs: same path: depth_i - depth_j, else +-(depth_i + depth_j) by which word comes first; clipped, rows of tables added to keys
and values as by Shaw et al. 2018, equations 3 and 4, beside those of the places. Tables narrower and wider than what occurs."""
import numpy as np
from layers import attention_weights
from trees import chain, draw
from zoo import check, linear, linear_weights, softmax, uniform


def sinusoid(position, d):
    pe = np.zeros(d)
    for k in range(d):
        angle = position / 10000.0 ** ((k - k % 2) / d)
        pe[k] = np.cos(angle) if k % 2 else np.sin(angle)
    return pe


def row(table, at):
    """Of a table of 2R + 1 rows the one for at, which is clipped to -R .. R."""
    r = len(table) // 2
    return table[max(-r, min(r, at)) + r].astype(np.float64)


def oracle(inputs, weights):
    out = []
    tables = [[weights[f"relative.{of}.{kind}"] for kind in ("sequence", "structure")] for of in ("key", "value")]
    for x, depth, path in zip(inputs["x"].astype(np.float64), inputs["depth"], inputs["path"]):
        n, d = x.shape
        pe = np.array([np.concatenate([sinusoid(i, d), sinusoid(depth[i], d)]) for i in range(n)])
        x = x + np.tanh(linear(pe, weights, "position"))
        q, k, v = (linear(x, weights, f"attention.{name}").reshape(n, 4, -1) for name in ("query", "key", "value"))
        o = np.zeros(q.shape)
        for i in range(n):
            extra_k, extra_v = np.zeros((2, n, q.shape[2]))
            for j in range(n):
                if path[i, j]:
                    rel = depth[i] - depth[j]
                else:
                    rel = (depth[i] + depth[j]) * (1 if i > j else -1)
                extra_k[j], extra_v[j] = (row(sequence, i - j) + row(structure, rel) for sequence, structure in tables)
            for h in range(4):
                p = softmax((k[:, h] + extra_k) @ q[i, h] / np.sqrt(q.shape[2]))
                o[i, h] = p @ (v[:, h] + extra_v)
        out.append(linear(o.reshape(n, d), weights, "attention.output"))
    return {"y": np.stack(out)}


rng = np.random.default_rng(526)
cases = []
for b, n, d, r, s in [(2, 11, 12, 3, 2), (1, 133, 8, 16, 9), (1, 1, 4, 1, 1), (1, 6, 8, 0, 50)]:
    weights = attention_weights(rng, "attention", d) | linear_weights(rng, "position", d, 2 * d)
    for of in ("key", "value"):
        weights |= {f"relative.{of}.{kind}": uniform(rng, 2 * size + 1, d // 4) for kind, size in (("sequence", r), ("structure", s))}
    trees = [draw(rng, n) for _ in range(b)]
    depth = np.array([[len(chain(t, i)) - 1 for i in range(n)] for t in trees], np.int32)
    path = np.array([[[i in chain(t, j) or j in chain(t, i) for j in range(n)] for i in range(n)] for t in trees])
    cases.append((dict(x=uniform(rng, b, n, d), depth=depth, path=path), weights))
check("syntax/structural-position", oracle, cases)
