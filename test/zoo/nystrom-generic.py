# RUN: %python %s heedc
# RUN: %python %s heedc --set=ridge=0
# RUN: %python %s heedc --set=L=7 --set=ridge=0.1
"""Lin et al. 2022, equation 19: softmax(Q K~') M^-1 softmax(Q~ K') V, M = softmax(Q~ K~'), landmarks the means of segments. For ridge = 0 with M^-1
itself, else by M = U diag(s) W': W diag(s / (s^2 + ridge)) U'."""
import sys

import numpy as np
from zoo import check, f64, softmax, uniform

option = lambda name, default: next((a.split("=")[-1] for a in sys.argv if f"{name}=" in a), default)
L, RIDGE = int(option("L", 4)), float(option("ridge", 0.01))


def oracle(inputs, _):
    q, k, v = f64(*(inputs[n] for n in ("q", "k", "v")))
    o = np.zeros(v.shape)
    for b, h in np.ndindex(*q.shape[:2]):
        ql, kl = (np.array([rows.mean(0) for rows in np.split(y[b, h], L)]) for y in (q, k))
        weights = lambda x, y: softmax(x @ y.T / np.sqrt(q.shape[-1]))
        m = weights(ql, kl)
        if RIDGE == 0:
            inverse = np.linalg.inv(m)
            assert np.linalg.cond(m) < 20
        else:
            U, s, W = np.linalg.svd(m)
            inverse = W.T @ np.diag(s / (s * s + RIDGE)) @ U.T
        o[b, h] = weights(q[b, h], kl) @ inverse @ weights(ql, k[b, h]) @ v[b, h]
    return {"o": o}


rng = np.random.default_rng(603)
cases = []
for b, h, s, e, f in [(2, 3, 3, 8, 5), (1, 2, 1, 9, 8), (1, 1, 35, 16, 16), (1, 1, 2, 7, 1), (2, 1, 20, 33, 17)]:
    q, k = uniform(rng, b, h, L * s, e), uniform(rng, b, h, L * s, e)
    for l in range(L):  # a direction of its own for each segment: then M is well-conditioned
        q[:, :, l * s : (l + 1) * s, l] += 4
        k[:, :, l * s : (l + 1) * s, l] += 2
    cases.append((dict(q=q, k=k, v=uniform(rng, b, h, L * s, f)), None))
check("lowrank/nystrom-generic", oracle, cases)
