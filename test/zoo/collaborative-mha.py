# RUN: %python %s heedc
"""Cordonnier et al. 2020, section 3: H^(i) = softmax(X W_Q diag(m_i) W_K^T Y^T / sqrt(d_k)) Y W_V^(i), joined and projected. One case is plain
multi-head attention: blocks of ones in m, and the oracle works head by head on slices, without m."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    x, y, wq, wk, m, wv, wo = f64(inputs["x"], inputs["y"], weights["query.weight"], weights["key.weight"], weights["mixing"],
                                  weights["value.weight"], weights["output.weight"])
    size = wv.shape[1]
    z = np.zeros(x.shape)
    for h in range(len(m)):
        if np.isin(m, (0, 1)).all():
            part = np.flatnonzero(m[h])
            scores = (x @ wq[part].T) @ (y @ wk[part].T).swapaxes(-1, -2)
        else:
            scores = x @ (wq.T @ np.diag(m[h]) @ wk) @ y.swapaxes(-1, -2)
        z += softmax(scores / np.sqrt(size)) @ (y @ wv[h].T) @ wo[:, h].T
    return {"z": z}


rng = np.random.default_rng(303)
cases = []
for b, n, k, d, c, h, e in [(2, 9, 13, 16, 11, 4, 4), (1, 131, 135, 8, 5, 3, 3), (1, 7, 1, 6, 1, 2, 2), (2, 6, 10, 8, 8, 4, 2), (1, 1, 1, 1, 1, 1, 1)]:
    mixing = np.kron(np.eye(h), np.ones((1, e))).astype(np.float32) if c == h * e else uniform(rng, h, c)
    weights = {name + ".weight": uniform(rng, c, d) / np.float32(d**0.5) for name in ("query", "key")}
    weights |= {"mixing": mixing, "value.weight": uniform(rng, h, e, d), "output.weight": uniform(rng, d, h, e)}
    cases.append((dict(x=uniform(rng, b, n, d), y=uniform(rng, b, k, d)), weights))
check("heads/collaborative-mha", oracle, cases)
