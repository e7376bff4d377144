# RUN: %python %s heedc
"""Peng et al. 2021: phi(x) = relu(w x) / sqrt(R) in kernel attention; 1e-3 is added to the denominator. In the last case every feature of a
query, in the one before every feature of all keys is zero."""
import numpy as np
from zoo import check, f64, uniform


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    omega = weights["omega"].astype(np.float64)
    a = np.einsum("bhir,bhjr->bhij", np.maximum(q @ omega.T, 0), np.maximum(k @ omega.T, 0)) / len(omega)
    return {"o": a @ v / (a.sum(-1, keepdims=True) + 1e-3)}


rng = np.random.default_rng(325)
cases = []
for b, h, n, m, e, f, r in [(2, 2, 17, 23, 8, 5, 12), (1, 1, 140, 150, 8, 8, 16), (1, 1, 1, 1, 4, 4, 8), (1, 1, 6, 5, 4, 3, 4), (1, 1, 6, 5, 4, 3, 4)]:
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, m, e), v=uniform(rng, b, h, m, f))
    cases.append((inputs, {"omega": uniform(rng, r, e)}))
cases[-2][1]["omega"], cases[-1][1]["omega"] = np.abs(cases[-2][1]["omega"]), np.abs(cases[-1][1]["omega"])
cases[-2][0]["k"] = -np.abs(cases[-2][0]["k"])
cases[-1][0]["q"][:, :, 2] = -1
check("linear/relu-features", oracle, cases)
