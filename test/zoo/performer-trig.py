# RUN: %python %s heedc
"""Choromanski et al. 2020, equation 5 with f = sin, cos, h = exp(|x|^2/2): by sin a sin b + cos a cos b = cos(a - b) the kernel is the mean over w of
exp(|q|^2/2 + |k|^2/2) cos w(q - k). Many features, short rows: the denominator stays away from 0. That it is near exp(q k) is asserted, too."""
import numpy as np
from zoo import check, f64, uniform


def oracle(inputs, weights):
    q, k, v, omega = f64(inputs["q"], inputs["k"], inputs["v"], weights["omega"])
    q, k = q / q.shape[-1] ** 0.25, k / k.shape[-1] ** 0.25
    o = np.zeros(q.shape[:3] + v.shape[3:])
    for b, h, i in np.ndindex(*q.shape[:3]):
        x = q[b, h, i]
        a = np.array([np.exp((x @ x + y @ y) / 2) * np.mean(np.cos(omega @ (x - y))) for y in k[b, h]])
        if len(omega) >= 1000:
            assert np.all(np.abs(a / np.exp(k[b, h] @ x) - 1) < 0.25)
        o[b, h, i] = a @ v[b, h] / a.sum()
    return {"o": o}


rng = np.random.default_rng(414)
cases = []
for b, h, n, m, e, f, r in [(2, 2, 7, 13, 8, 5, 32), (1, 1, 150, 140, 4, 8, 16), (1, 1, 1, 1, 4, 4, 3), (1, 1, 5, 9, 4, 3, 2000)]:
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, m, e), v=uniform(rng, b, h, m, f))
    cases.append((inputs, {"omega": rng.standard_normal((r, e)).astype(np.float32)}))
check("linear/performer-trig", oracle, cases)
