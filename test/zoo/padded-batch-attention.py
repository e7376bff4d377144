# RUN: %python %s heedc
"""Each sequence of the batch by itself, without padding; what lies in the padding (NaN here) must not matter."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    out = np.zeros(q.shape[:3] + v.shape[3:])
    for b, n in enumerate(inputs["length"]):
        qb, kb, vb = q[b, :, :n], k[b, :, :n], v[b, :, :n]
        out[b, :, :n] = softmax(qb @ kb.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ vb
    return {"o": out}


rng = np.random.default_rng(3)
cases = []
for lengths, h, n, e, f in [([5, 3, 0], 2, 5, 8, 4), ([70, 1], 1, 70, 32, 32), ([1], 1, 1, 4, 4)]:
    q, k, v = uniform(rng, len(lengths), h, n, e), uniform(rng, len(lengths), h, n, e), uniform(rng, len(lengths), h, n, f)
    for b, length in enumerate(lengths):
        q[b, :, length:], k[b, :, length:], v[b, :, length:] = np.nan, np.nan, np.nan
    cases.append((dict(q=q, k=k, v=v, length=np.array(lengths, np.int32)), None))
check("core/padded-batch-attention", oracle, cases)
