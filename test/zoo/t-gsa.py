# RUN: %python %s heedc
"""Kim et al. 2020, equations 3 to 5: softmax(|G o (Q K' / sqrt(d))|) V, G_ij = exp(-|i - j|^2 / sigma^2), G built as a Toeplitz matrix. A sigma so small
that G is the identity leaves the other words equal weights."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v, sigma = f64(*(inputs[n] for n in ("q", "k", "v", "sigma")))
    n = q.shape[2]
    o = np.zeros(v.shape)
    for h, width in enumerate(sigma):
        bell = np.exp(-(np.arange(n) / width) ** 2)
        G = np.array([[bell[abs(i - j)] for j in range(n)] for i in range(n)])
        for b in range(len(q)):
            o[b, h] = softmax(np.abs(G * (q[b, h] @ k[b, h].T / np.sqrt(q.shape[3])))) @ v[b, h]
    return {"o": o}


rng = np.random.default_rng(410)
cases = []
for b, n, e, f, sigma in [(2, 17, 8, 5, [1, 4, 0.01]), (1, 150, 4, 8, [30, 2]), (1, 1, 4, 4, [1]), (1, 33, 16, 16, [500])]:
    h = len(sigma)
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f), sigma=np.array(sigma, np.float32))
    cases.append((inputs, None))
check("score/t-gsa", oracle, cases)
