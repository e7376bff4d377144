# RUN: %python %s heedc
"""Liu et al. 2018: the sequence is cut into blocks of 16, each a small attention of its own; the last block is what is left."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights, block=16):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    parts = []
    for start in range(0, q.shape[2], block):
        qb, kb, vb = (x[:, :, start:start + block] for x in (q, k, v))
        parts.append(softmax(qb @ kb.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ vb)
    return {"o": np.concatenate(parts, 2)}


rng = np.random.default_rng(302)
cases = []
for b, h, n, e, f in [(2, 2, 37, 8, 5), (1, 1, 300, 16, 16), (1, 2, 16, 4, 4), (1, 1, 5, 4, 4), (1, 1, 1, 4, 6)]:
    cases.append((dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f)), None))
check("sparse/block-local-attention", oracle, cases)
