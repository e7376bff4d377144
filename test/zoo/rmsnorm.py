# RUN: %python %s heedc
"""Zhang and Sennrich 2019, equation 4: g_i a_i / RMS(a), RMS(a) = sqrt(mean(a^2)), eps below the root. A row of zeros stays zeros."""
import numpy as np
from zoo import check, f64, uniform


def oracle(inputs, weights, eps=1e-6):
    x, g = f64(inputs["x"], weights["weight"])
    return {"y": np.stack([[g * row / np.sqrt(np.dot(row, row) / row.size + eps) for row in rows] for rows in x])}


rng = np.random.default_rng(411)
cases = []
for b, n, d in [(2, 9, 17), (1, 131, 8), (2, 1, 1), (1, 3, 300)]:
    x = uniform(rng, b, n, d)
    x[0, 0] = 0
    cases.append((dict(x=x), {"weight": uniform(rng, d)}))
check("norm-residual/rmsnorm", oracle, cases)
