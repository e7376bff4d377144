# RUN: %python %s heedc
"""Qiu et al. 2020, equations 3 and 4: block c of head h attends to block pi_h(c) of n, each block as an attention of its own. N need not be a multiple of
n; with fewer positions than blocks some blocks are empty, and so are the rows that point to them."""
import numpy as np
from zoo import check, f64, softmax, uniform

PI = [[0, 1, 2], [1, 2, 0]]


def oracle(inputs, weights):
    Q, K, V = f64(inputs["Q"], inputs["K"], inputs["V"])
    n = Q.shape[2]
    bounds = [-(-n * c // 3) for c in range(4)]  # block c begins at ceil(c N / n)
    blocks = [slice(bounds[c], bounds[c + 1]) for c in range(3)]
    o = np.zeros(V.shape)
    for b in range(len(Q)):
        for h, order in enumerate(PI):
            for rows, seen in zip(blocks, (blocks[c] for c in order)):
                if seen.start < seen.stop:
                    o[b, h, rows] = softmax(Q[b, h, rows] @ K[b, h, seen].T / np.sqrt(Q.shape[3])) @ V[b, h, seen]
    return {"o": o}


rng = np.random.default_rng(412)
cases = []
for b, n, e, f in [(2, 12, 8, 5), (1, 151, 4, 8), (1, 1, 4, 4), (1, 2, 3, 3), (2, 40, 16, 6), (1, 396, 4, 4)]:
    cases.append((dict(Q=uniform(rng, b, 2, n, e), K=uniform(rng, b, 2, n, e), V=uniform(rng, b, 2, n, f)), None))
check("sparse/blockbert", oracle, cases)
