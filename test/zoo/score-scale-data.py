# RUN: %python %s heedc
"""Xiao and Zhu 2023, equation 54: softmax((Q K^T / sqrt(d)) * M) V. A 0 in M makes the score 0, it does not take the key away (footnote 4)."""
import numpy as np
from zoo import check, f64, uniform


def oracle(inputs, weights):
    q, k, v, mask = f64(inputs["q"], inputs["k"], inputs["v"], inputs["mask"])
    a = np.exp(np.einsum("bhie,bhje,bij->bhij", q, k, mask) / np.sqrt(q.shape[-1]))
    return {"o": np.einsum("bhij,bhjf->bhif", a / a.sum(-1, keepdims=True), v)}


rng = np.random.default_rng(202)
cases = []
for b, h, n, e, f in [(1, 2, 150, 8, 8), (2, 3, 19, 16, 4), (1, 1, 1, 4, 4)]:
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f))
    cases.append((inputs | dict(mask=uniform(rng, b, n, n)), None))
    cases.append((inputs | dict(mask=np.broadcast_to(np.tri(n, dtype=np.float32), (b, n, n)).copy()), None))  # not a causal mask
    cases.append((inputs | dict(mask=np.zeros((b, n, n), np.float32)), None))
check("score/score-scale-data", oracle, cases)
