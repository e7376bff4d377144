# RUN: %python %s heedc
"""Chu et al. 2021, PEG: tokens + depthwise 3 x 3 convolution of their grid, zeros around it; the class token unchanged. Grids of width 5."""
import numpy as np
from zoo import check, f64, uniform


def oracle(inputs, weights):
    x, w, bias = f64(inputs["x"], weights["peg.weight"], weights["peg.bias"])
    b, n, d = x.shape
    rows = (n - 1) // 5
    padded = np.zeros((b, rows + 2, 7, d))
    padded[:, 1:-1, 1:-1] = x[:, 1:].reshape(b, rows, 5, d)
    y = x.copy()
    for r in range(rows):
        for c in range(5):
            y[:, 1 + 5 * r + c] += np.einsum("buvd,duv->bd", padded[:, r : r + 3, c : c + 3], w[:, 0]) + bias
    return {"y": y}


rng = np.random.default_rng(110)
cases = []
for b, rows, d in [(2, 4, 8), (1, 30, 4), (1, 1, 3), (3, 2, 16), (2, 0, 4)]:
    cases.append((dict(x=uniform(rng, b, 1 + 5 * rows, d)), {"peg.weight": uniform(rng, d, 1, 3, 3), "peg.bias": uniform(rng, d)}))
check("position/cpe", oracle, cases)
