# RUN: %python %s heedc
"""Bello 2021, equations 1 and 2: lambda_n = sum_m (softmax_m(K)_m + E_nm) v_m', y_n = lambda_n' q_n, in the attention order, without lambda: the weight
of m for query n is q_n (softmax(K)_m + E_nm)."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v, E = f64(inputs["q"], inputs["k"], inputs["v"], weights["relative"])
    n, t = q.shape[2], (len(E) + 1) // 2
    kn = softmax(k.swapaxes(1, 2)).swapaxes(1, 2)
    table = np.array([[E[m - i + t - 1] for m in range(n)] for i in range(n)])
    a = np.einsum("bhnc,bmc->bhnm", q, kn) + np.einsum("bhnc,nmc->bhnm", q, table)
    return {"y": np.einsum("bhnm,bmu->bhnu", a, v)}


rng = np.random.default_rng(415)
cases = []
for b, h, n, c, u, t in [(2, 3, 9, 4, 5, 12), (1, 2, 140, 4, 8, 140), (1, 1, 1, 1, 1, 1), (1, 4, 33, 16, 6, 40)]:
    inputs = dict(q=uniform(rng, b, h, n, c), k=uniform(rng, b, n, c), v=uniform(rng, b, n, u))
    cases.append((inputs, {"relative": uniform(rng, 2 * t - 1, c)}))
check("linear/lambda-networks", oracle, cases)
