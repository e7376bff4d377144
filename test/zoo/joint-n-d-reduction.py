# RUN: %python %s heedc
"""Xiao and Zhu 2023, equation 149: softmax(Q' K'^T / sqrt(d') + M) V' with Q' n x d', K' and V' n' x d'; W_o leads back to d."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v, mask = f64(inputs["q"], inputs["k"], inputs["v"], inputs["mask"])
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    m = k.shape[1]
    kl, vl = w["Pk"][:, :m] @ (k @ w["Uk"]), w["Pv"][:, :m] @ (v @ w["Uv"])
    s = np.einsum("bir,bcr->bic", q @ w["Uq"], kl) / np.sqrt(w["Uq"].shape[1])
    return {"y": softmax(s + np.where(np.isfinite(mask), mask, 0), np.isfinite(mask)) @ vl @ w["Wo"]}


rng = np.random.default_rng(333)
cases = []
for b, n, m, length, d, c, r in [(2, 17, 23, 30, 12, 6, 3), (1, 140, 150, 150, 8, 20, 4), (1, 1, 1, 1, 4, 1, 1), (1, 5, 3, 8, 6, 4, 2)]:
    inputs = dict(q=uniform(rng, b, n, d), k=uniform(rng, b, m, d), v=uniform(rng, b, m, d))
    mask = np.where(rng.random((n, c)) < 0.8, uniform(rng, n, c), -np.inf).astype(np.float32)
    mask[0] = -np.inf if n == 5 else 0
    along, across = np.float32(m**-0.5), np.float32(d**-0.5)
    weights = {name: uniform(rng, c, length) * along for name in ("Pk", "Pv")} | {name: uniform(rng, d, r) * across for name in ("Uq", "Uk", "Uv")}
    cases.append((inputs | dict(mask=mask), weights | {"Wo": uniform(rng, r, d)}))
check("lowrank/joint-n-d-reduction", oracle, cases)
