# RUN: %python %s heedc
# RUN: %python %s heedc --set=method=1
# RUN: %python %s heedc --set=method=2
# RUN: %python %s heedc --set=method=3
"""Huang et al. 2020, section 3: e_ij sqrt(d) is q k a_|j-i| (method 1), q k a_(j-i) (2), sum_c q_c k_c a_(j-i),c (3) or q k + q a_(j-i) + k a_(j-i) (4).
Rank-1 parts of a rank-3 array over all offsets; clipping distance above and below the length."""
import sys
import numpy as np
from zoo import check, f64, softmax, uniform

METHOD = ([int(a[-1]) for a in sys.argv if a.startswith("--set=method=")] or [4])[0]


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    table, = f64(*weights.values())
    n, m, e = q.shape[2], k.shape[2], q.shape[3]
    offset = np.arange(m)[None, :] - np.arange(n)[:, None]
    if METHOD == 1:
        rows = np.minimum(np.abs(offset), len(table) - 1)
    else:
        rows = np.clip(offset, -(len(table) // 2), len(table) // 2) + len(table) // 2
    a = table[rows]
    s = {1: lambda: np.einsum("bhie,bhje,ij->bhij", q, k, a), 2: lambda: np.einsum("bhie,bhje,ij->bhij", q, k, a),
         3: lambda: np.einsum("bhie,bhje,ije->bhij", q, k, a),
         4: lambda: sum(np.einsum(eq, *args) for eq, args in
                        [("bhie,bhje->bhij", (q, k)), ("bhie,ije->bhij", (q, a)), ("bhje,ije->bhij", (k, a))])}[METHOD]()
    return {"o": np.einsum("bhij,bhjf->bhif", softmax(s / np.sqrt(e)), v)}


rng = np.random.default_rng(406)
cases = []
for b, h, n, m, e, f, r in [(2, 2, 17, 17, 8, 5, 4), (1, 2, 150, 150, 4, 8, 16), (1, 1, 1, 1, 4, 4, 0), (1, 3, 9, 21, 5, 6, 40)]:
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, m, e), v=uniform(rng, b, h, m, f))
    weights = {1: {"w": uniform(rng, r + 1)}, 2: {"w": uniform(rng, 2 * r + 1)}}.get(METHOD, {"a": uniform(rng, 2 * r + 1, e)})
    cases.append((inputs, weights))
check("position/huang-rpr-m4", oracle, cases)
