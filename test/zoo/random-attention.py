# RUN: %python %s heedc
"""Zaheer et al. 2020, section 2: each query attends r keys drawn at random, as a dense attention with all other pairs masked."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    n = q.shape[2]
    live = np.zeros((n, n), bool)
    for i, row in enumerate(inputs["idx"]):
        live[i, row] = True
    return {"o": softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), live) @ v}


rng = np.random.default_rng(306)
cases = []
for b, h, n, e, f, r in [(2, 2, 23, 8, 5, 3), (1, 1, 200, 16, 16, 7), (1, 1, 5, 4, 4, 5), (1, 1, 1, 4, 6, 1), (1, 1, 3, 4, 4, 0)]:
    idx = np.array([rng.permutation(n)[:r] for _ in range(n)], np.int32).reshape(n, r)
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f), idx=idx), None))
check("sparse/random-attention", oracle, cases)
