# RUN: %python %s heedc
"""Wang et al. 2020, equation 7: softmax(Q (E K)^T / sqrt(d)) F V; of E and F (K x L) the first columns, as many as there are keys."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    e, f = (weights[name].astype(np.float64)[:, :k.shape[2]] for name in ("E", "F"))
    return {"o": softmax(q @ (e @ k).swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ (f @ v)}


rng = np.random.default_rng(331)
cases = []
for b, h, n, m, d, c, rows, length in [(2, 3, 17, 23, 8, 5, 7, 40), (1, 1, 140, 150, 8, 8, 16, 150), (1, 1, 1, 1, 4, 4, 1, 1), (1, 1, 5, 3, 4, 4, 9, 6)]:
    inputs = dict(q=uniform(rng, b, h, n, d), k=uniform(rng, b, h, m, d), v=uniform(rng, b, h, m, c))
    scale = np.float32(m**-0.5)
    cases.append((inputs, {"E": uniform(rng, rows, length) * scale, "F": uniform(rng, rows, length) * scale}))
check("lowrank/linformer", oracle, cases)
