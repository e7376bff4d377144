# RUN: %python %s heedc
"""Lin et al. 2022, equation 7: softmax over the keys of the relation alone, here (band or edge) and not padding; no key gives zeros."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights, window=2):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    out = np.zeros(q.shape[:3] + v.shape[3:])
    for b in range(q.shape[0]):
        for i in range(q.shape[2]):
            band = set(range(i - window, i + window + 1))
            keys = sorted((band | set(np.flatnonzero(inputs["edges"][b, i]))) & set(range(inputs["length"][b])))
            s = np.einsum("he,hje->hj", q[b, :, i], k[b][:, keys]) / np.sqrt(q.shape[-1])
            out[b, :, i] = np.einsum("hj,hjf->hf", softmax(s), v[b][:, keys])
    return {"o": out}


rng = np.random.default_rng(301)
cases = []
for lengths, h, n, m, e, f, density in [([7, 4, 0], 2, 9, 7, 8, 5, 0.2), ([150, 33], 1, 140, 150, 8, 8, 0.05), ([1], 1, 1, 1, 4, 4, 0), ([3], 2, 20, 3, 4, 4, 0.1)]:
    b = len(lengths)
    q, k, v = uniform(rng, b, h, n, e), uniform(rng, b, h, m, e), uniform(rng, b, h, m, f)
    for row, length in enumerate(lengths):
        k[row, :, length:], v[row, :, length:] = np.nan, np.nan
    cases.append((dict(q=q, k=k, v=v, edges=rng.random((b, n, m)) < density, length=np.array(lengths, np.int32)), None))
check("sparse/sparse-generic", oracle, cases)
