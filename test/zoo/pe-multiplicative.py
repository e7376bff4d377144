# RUN: %python %s heedc
"""y_i = x_i * p_i with a learned vector p_i for each position; the table may be longer than the sentence."""
import numpy as np
from zoo import check, f64, uniform


def oracle(inputs, weights):
    x, p = f64(inputs["x"], weights["position.weight"])
    y = np.zeros(x.shape)
    for i in range(x.shape[1]):
        y[:, i] = x[:, i] @ np.diag(p[i])
    return {"y": y}


rng = np.random.default_rng(404)
cases = [(dict(x=uniform(rng, b, n, d)), {"position.weight": uniform(rng, t, d)}) for b, n, t, d in
         [(2, 7, 12, 5), (1, 1, 1, 1), (1, 140, 140, 9), (3, 1, 40, 8), (1, 0, 4, 3)]]
check("position/pe-multiplicative", oracle, cases)
