# RUN: %python %s heedc
"""Beltagy et al. 2020: the positions r, r + s, r + 2 s, .. attend to one another; here s = 4 slices, each a dense attention."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights, stride=4):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    out = np.zeros(q.shape[:3] + v.shape[3:])
    for r in range(stride):
        qr, kr, vr = (x[:, :, r::stride] for x in (q, k, v))
        out[:, :, r::stride] = softmax(qr @ kr.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ vr
    return {"o": out}


rng = np.random.default_rng(303)
cases = []
for b, h, n, e, f in [(2, 2, 37, 8, 5), (1, 1, 301, 16, 16), (1, 1, 3, 4, 4), (1, 1, 1, 4, 6)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f)), None))
check("sparse/strided-attention", oracle, cases)
