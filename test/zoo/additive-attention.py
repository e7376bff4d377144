# RUN: %python %s heedc
"""Bahdanau et al. 2015, appendix A.1.2: e_ij = v^T tanh(W s_i + U h_j)."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    x, y, w, v = f64(inputs["x"], inputs["y"], inputs["w"], inputs["v"])
    return {"o": softmax(np.tanh(x[:, :, None] + y[:, None]) @ w) @ v}


rng = np.random.default_rng(14)
cases = []
for b, n, m, a, f in [(2, 5, 9, 8, 4), (1, 50, 70, 32, 16), (1, 1, 1, 1, 1)]:
    cases.append((dict(x=uniform(rng, b, n, a), y=uniform(rng, b, m, a), w=uniform(rng, a), v=uniform(rng, b, m, f)), None))
check("score/additive-attention", oracle, cases)
