# RUN: %python %s heedc
"""Luong et al. 2015, section 3.1, score "dot": a = softmax(h_t^T h_s), c = sum a h_s."""
import numpy as np
from zoo import check, f64, uniform


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    a = np.exp(np.einsum("bhie,bhje->bhij", q, k))
    return {"o": np.einsum("bhij,bhjf->bhif", a / a.sum(-1, keepdims=True), v)}


rng = np.random.default_rng(201)
cases = []
for b, h, n, m, e, f in [(1, 2, 150, 137, 8, 8), (2, 1, 7, 3, 33, 4), (1, 1, 1, 1, 1, 1), (2, 3, 1, 40, 16, 5)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, m, e), v=uniform(rng, b, h, m, f)), None))
check("score/sdpa-unscaled", oracle, cases)
