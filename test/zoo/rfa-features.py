# RUN: %python %s heedc
"""Peng et al. 2021, section 3.1: phi(q) sum_j phi(k_j) v_j / phi(q) sum_j phi(k_j) with phi(x) = [sin w x, cos w x] / sqrt(R) of x / |x|.
phi(x) phi(y) is the mean of cos(w (x - y)), which the oracle takes; w is scaled so that it stays away from zero."""
import numpy as np
from zoo import check, f64, uniform


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    a = np.cos((q[..., :, None, :] - k[..., None, :, :]) @ weights["omega"].astype(np.float64).T).mean(-1)
    assert a.sum(-1).min() > 0.1 * a.shape[-1]
    return {"o": a / a.sum(-1, keepdims=True) @ v}


rng = np.random.default_rng(324)
cases = []
for b, h, n, m, e, f, r in [(2, 2, 17, 23, 8, 5, 12), (1, 1, 140, 150, 8, 8, 16), (1, 1, 1, 1, 4, 4, 1)]:
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, m, e), v=uniform(rng, b, h, m, f))
    cases.append((inputs, {"omega": rng.standard_normal((r, e)).astype(np.float32) / 2}))
check("linear/rfa-features", oracle, cases)
