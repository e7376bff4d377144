# RUN: %python %s heedc --set=R=3.5
"""Sukhbaatar et al. 2019, section 2, position by position: s_tr = q_t (k_r + p_{t-r}), a_tr = m_z(t - r) exp(s_tr) / sum, over the S
positions before t, m_z(x) = min(max((R + z - x) / R, 0), 1). Where nothing is before t, or the span ends before distance 1, the quotient
is 0/0."""
import numpy as np
from zoo import check, f64, uniform


def oracle(inputs, weights, ramp=3.5):
    q, k, v, p, z = f64(*(inputs[n] for n in ("q", "k", "v", "p", "z")))
    b, h, n, e = q.shape
    memory = k.shape[2] - n
    y = np.full((b, h, n, v.shape[3]), np.nan)
    for bb, hh, t in np.ndindex(b, h, n):
        above, below = np.zeros(v.shape[3]), 0.0
        for x in range(1, min(len(p), t + memory) + 1):
            r = t + memory - x
            a = min(max((ramp + z[hh] - x) / ramp, 0), 1) * np.exp(q[bb, hh, t] @ (k[bb, hh, r] + p[x - 1]))
            above, below = above + a * v[bb, hh, r], below + a
        if below > 0:
            y[bb, hh, t] = above / below
    return {"y": y}


rng = np.random.default_rng(305)
cases = []
for b, n, memory, e, f, s, spans in [(2, 9, 5, 8, 6, 6, [0.0, 2.5]), (1, 140, 20, 4, 4, 30, [0.0, 9.25, 100.0]), (1, 7, 0, 4, 4, 20, [1.0]),
                                     (1, 5, 4, 4, 4, 3, [-3.0, 4.0]), (1, 1, 1, 1, 1, 1, [0.0])]:
    h = len(spans)
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n + memory, e), v=uniform(rng, b, h, n + memory, f))
    cases.append((inputs | dict(p=uniform(rng, s, e), z=np.array(spans, np.float32)), None))
check("heads/adaptive-span", oracle, cases)
