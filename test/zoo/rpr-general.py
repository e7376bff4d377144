# RUN: %python %s heedc
"""Xiao and Zhu 2023, equations 71 to 75: the four terms q k, q u^k, u^q k, u^q u^k of the score, and the offset's term in the value."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v, uq, uk, uv = f64(*(inputs[n] for n in ("q", "k", "v", "uq", "uk", "uv")))
    n, m, reach = q.shape[2], k.shape[2], len(uq) // 2
    s, o = np.zeros(q.shape[:3] + (m,)), np.zeros(q.shape[:3] + v.shape[3:])
    row = [[max(-reach, min(j - i, reach)) + reach for j in range(m)] for i in range(n)]
    for i in range(n):
        for j in range(m):
            a, c = uq[row[i][j]], uk[row[i][j]]
            s[:, :, i, j] = (q[:, :, i] * k[:, :, j]).sum(-1) + q[:, :, i] @ c + k[:, :, j] @ a + a @ c
    p = softmax(s / np.sqrt(q.shape[-1]))
    for i in range(n):
        for j in range(m):
            o[:, :, i] += p[:, :, i, j, None] * (v[:, :, j] + uv[row[i][j]])
    return {"o": o}


rng = np.random.default_rng(105)
cases = []
for b, h, n, m, e, f, r in [(1, 2, 140, 133, 4, 8, 3), (2, 1, 7, 20, 16, 4, 16), (1, 3, 5, 5, 8, 8, 3), (1, 1, 1, 1, 4, 4, 0)]:
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, m, e), v=uniform(rng, b, h, m, f))
    inputs |= dict(uq=uniform(rng, 2 * r + 1, e), uk=uniform(rng, 2 * r + 1, e), uv=uniform(rng, 2 * r + 1, f))
    cases.append((inputs, None))
check("position/rpr-general", oracle, cases)
