# RUN: %python %s heedc
"""Choromanski et al. 2020, lemma 1: SM(x, y) is the mean over w of exp(w x - |x|^2/2) exp(w y - |y|^2/2), x and y divided by E^(1/4), the
rows of w orthogonal with lengths of Gaussian vectors. Without any maximum, in the order of keys and values first."""
import numpy as np
from zoo import check, f64, uniform


def orthogonal(rng, rows, e):
    blocks = [np.linalg.qr(rng.standard_normal((e, e)))[0] for _ in range(-(-rows // e))]
    lengths = np.linalg.norm(rng.standard_normal((rows, e)), axis=1)
    return (np.concatenate(blocks)[:rows] * lengths[:, None]).astype(np.float32)


def features(x, omega):
    x = x / x.shape[-1] ** 0.25
    return np.exp(x @ omega.T - (x * x).sum(-1, keepdims=True) / 2) / np.sqrt(len(omega))


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    omega = weights["omega"].astype(np.float64)
    q, k = features(q, omega), features(k, omega)
    return {"o": q @ (k.swapaxes(-1, -2) @ v) / (q @ k.sum(2)[..., None])}


rng = np.random.default_rng(323)
cases = []
for b, h, n, m, e, f, r in [(2, 2, 17, 23, 8, 5, 12), (1, 1, 150, 140, 8, 8, 16), (1, 1, 1, 1, 4, 4, 1)]:
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, m, e), v=uniform(rng, b, h, m, f))
    cases.append((inputs, {"omega": orthogonal(rng, r, e)}))
check("linear/performer-favor", oracle, cases)
