# RUN: %python %s heedc
"""Xiao and Zhu 2023, equations 136 to 138: softmax(Q U_q (K U_k)^T / sqrt(d) + M) V, with the projections folded, x (W_q U_q) (W_k U_k)^T x^T."""
import numpy as np
from zoo import check, softmax, uniform


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    d = x.shape[-1]
    form = w["query.weight"].T @ w["Uq"] @ w["Uk"].T @ w["key.weight"]
    mask = inputs["mask"]
    s = np.einsum("bid,de,bje->bij", x, form, x) / np.sqrt(d) + np.where(np.isfinite(mask), mask, 0)
    return {"o": softmax(s, np.isfinite(mask)) @ (x @ w["value.weight"].T)}


rng = np.random.default_rng(332)
cases = []
for b, n, d, r in [(2, 17, 12, 3), (1, 150, 8, 4), (1, 1, 4, 1), (1, 7, 6, 9)]:
    mask = np.where(np.tri(n, dtype=bool), uniform(rng, n, n), -np.inf).astype(np.float32)
    if n == 7:
        mask[3] = -np.inf
    scale = np.float32(d**-0.5)
    weights = {f"{name}.weight": uniform(rng, d, d) * scale for name in ("query", "key", "value")}
    cases.append((dict(x=uniform(rng, b, n, d), mask=mask), weights | {"Uq": uniform(rng, d, r) * scale, "Uk": uniform(rng, d, r) * scale}))
check("lowrank/low-dim-qk", oracle, cases)
