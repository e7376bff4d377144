# RUN: %python %s heedc
"""Vaswani et al. 2017, section 3.4: one matrix for both embeddings, times sqrt(d_model), and for the linear before the softmax."""
import numpy as np
from zoo import check, f64, uniform


def oracle(inputs, weights):
    table, h = f64(weights["shared.weight"], inputs["H"])
    pick = np.eye(len(table)) * len(table[0]) ** 0.5
    return {"x": pick[inputs["source"]] @ table, "y": pick[inputs["target"]] @ table, "logits": np.einsum("bid,vd->biv", h, table)}


rng = np.random.default_rng(102)
cases = []
for b, m, n, v, d in [(2, 7, 5, 11, 6), (1, 1, 1, 1, 1), (1, 140, 33, 301, 12), (3, 2, 131, 17, 3)]:
    ids = [rng.integers(0, v, (b, k)).astype(np.int32) for k in (m, n)]
    cases.append((dict(source=ids[0], target=ids[1], H=uniform(rng, b, n, d)), {"shared.weight": uniform(rng, v, d)}))
check("core/embedding-tied", oracle, cases)
