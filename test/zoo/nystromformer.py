# RUN: %python %s heedc
# RUN: %python %s heedc --set=L=7 --set=steps=9
"""Xiong et al. 2021, equations 11 to 14: softmax(Q K~') Z softmax(Q~ K') V with Z_(t+1) = Z (13 I - M Z (15 I - M Z (7 I - M Z))) / 4 after six
steps, near the inverse of M = softmax(Q~ K~'); and each head's values convolved with its filter."""
import sys

import numpy as np
from zoo import check, f64, softmax, uniform

option = lambda name, default: next((a.split("=")[-1] for a in sys.argv if f"{name}=" in a), default)
L, STEPS = int(option("L", 4)), int(option("steps", 6))


def oracle(inputs, weights):
    q, k, v, conv = f64(*(inputs[n] for n in ("q", "k", "v")), weights["conv.weight"])
    o = np.zeros(v.shape)
    one = np.eye(L)
    for b, h in np.ndindex(*q.shape[:2]):
        ql, kl = (np.array([rows.mean(0) for rows in np.split(y[b, h], L)]) for y in (q, k))
        attend = lambda x, y: softmax(x @ y.T / np.sqrt(q.shape[-1]))
        m = attend(ql, kl)
        z = m.T / (np.linalg.norm(m, 1) * np.linalg.norm(m, np.inf))
        for _ in range(STEPS):
            z = z @ (13 * one - m @ z @ (15 * one - m @ z @ (7 * one - m @ z))) / 4
        if np.linalg.cond(m) < 10:
            assert np.allclose(z, np.linalg.inv(m), atol=1e-3)
        half = conv.shape[1] // 2
        padded = np.pad(v[b, h], ((half, half), (0, 0)))
        o[b, h] = attend(q[b, h], kl) @ z @ attend(ql, k[b, h]) @ v[b, h]
        o[b, h] += np.array([np.convolve(x, conv[h, ::-1], "valid") for x in padded.T]).T
    return {"o": o}


rng = np.random.default_rng(604)
cases = []
for b, h, s, e, f, width, apart in [(2, 3, 3, 8, 5, 5, 4), (1, 2, 1, 9, 8, 33, 4), (1, 1, 35, 16, 16, 3, 2), (1, 1, 2, 7, 1, 1, 0),
                                    (2, 1, 20, 33, 17, 35, 1)]:
    q, k = uniform(rng, b, h, L * s, e), uniform(rng, b, h, L * s, e)
    for l in range(L):  # a direction of its own for each segment: the larger, the better is M conditioned
        q[:, :, l * s : (l + 1) * s, l] += apart
        k[:, :, l * s : (l + 1) * s, l] += apart / 2
    cases.append((dict(q=q, k=k, v=uniform(rng, b, h, L * s, f)), {"conv.weight": uniform(rng, h, width)}))
check("lowrank/nystromformer", oracle, cases)
