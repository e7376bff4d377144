# RUN: %python %s heedc
# RUN: %python %s heedc --set=combine=multiply
# RUN: %python %s heedc --set=symmetric=false
"""Xiao and Zhu 2023, equations 53, 54, 57 and 58: scores plus (times) max(Pr(i | j), Pr(j | i)), Pr(i | j) the probability that i is the parent of j;
one case has a certain parser (0 and 1). Pair by pair."""
import sys

import numpy as np
from trees import draw
from zoo import check, f64, softmax, uniform

MULTIPLY, ONE_WAY = "--set=combine=multiply" in sys.argv, "--set=symmetric=false" in sys.argv


def oracle(inputs, weights):
    q, k, v, parent = f64(inputs["q"], inputs["k"], inputs["v"], inputs["parent"])
    out = np.zeros(v.shape)
    for b, h, i in np.ndindex(*q.shape[:3]):
        row = []
        for j in range(q.shape[2]):
            of_j, of_i = parent[b, j, i], parent[b, i, j]  # i is the parent of j; j is the parent of i
            mask = of_j if ONE_WAY else max(of_j, of_i)
            score = q[b, h, i] @ k[b, h, j] / np.sqrt(q.shape[3])
            row.append(score * mask if MULTIPLY else score + mask)
        out[b, h, i] = softmax(np.array(row)) @ v[b, h]
    return {"o": out}


rng = np.random.default_rng(523)
cases = []
for b, h, n, e, f, sharp in [(2, 3, 13, 8, 5, 3), (1, 2, 140, 4, 4, 6), (1, 1, 1, 4, 4, 1), (1, 2, 9, 4, 3, None)]:
    q, k, v = uniform(rng, b, h, n, e), uniform(rng, b, h, n, e), uniform(rng, b, h, n, f)
    if sharp:
        parent = softmax(sharp * uniform(rng, b, n, n)).astype(np.float32)
    else:
        parent = (draw(rng, n)[:, None] == np.arange(n)).astype(np.float32)[None]
    cases.append((dict(q=q, k=k, v=v, parent=parent), None))
check("syntax/syntax-mask-parent-prob", oracle, cases)
