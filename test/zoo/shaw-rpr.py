# RUN: %python %s heedc
"""Shaw et al. 2018, equations 3 to 5: a^K and a^V of clip(j - i, k) are added to keys and values."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v, ak, av = f64(*(inputs[n] for n in ("q", "k", "v", "ak", "av")))
    n, m, reach = q.shape[2], k.shape[2], len(ak) // 2
    offset = np.clip(np.arange(m) - np.arange(n)[:, None], -reach, reach) + reach
    s = np.einsum("bhie,bhije->bhij", q, k[:, :, None] + ak[offset]) / np.sqrt(q.shape[-1])
    return {"o": np.einsum("bhij,bhijf->bhif", softmax(s), v[:, :, None] + av[offset])}


rng = np.random.default_rng(12)
cases = []
for b, h, n, m, e, f, r in [(1, 2, 40, 40, 8, 8, 4), (2, 1, 7, 20, 16, 4, 16), (1, 1, 1, 1, 4, 4, 0)]:
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, m, e), v=uniform(rng, b, h, m, f))
    cases.append((inputs | dict(ak=uniform(rng, 2 * r + 1, e), av=uniform(rng, 2 * r + 1, f)), None))
check("position/shaw-rpr", oracle, cases)
