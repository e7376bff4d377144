# RUN: %python %s heedc
"""Shazeer et al. 2020: J = Q K^T, L = J P_l over heads, W = softmax(L), U = W P_w over heads, O = U V."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v, pl, pw = f64(*(inputs[n] for n in ("q", "k", "v", "pl", "pw")))
    j = np.einsum("bane,bame->banm", q, k) / np.sqrt(q.shape[-1])
    w = softmax(np.einsum("banm,ah->bhnm", j, pl))
    return {"o": np.einsum("bhnm,hc,bcmf->bcnf", w, pw, v)}


rng = np.random.default_rng(16)
cases = []
for b, a, h, c, n, m, e, f in [(1, 4, 4, 4, 20, 30, 8, 8), (2, 2, 5, 3, 7, 9, 4, 6), (1, 1, 1, 1, 1, 1, 1, 1)]:
    inputs = dict(q=uniform(rng, b, a, n, e), k=uniform(rng, b, a, m, e), v=uniform(rng, b, c, m, f))
    cases.append((inputs | dict(pl=uniform(rng, a, h), pw=uniform(rng, h, c)), None))
check("heads/talking-heads", oracle, cases)
