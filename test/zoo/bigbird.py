# RUN: %python %s heedc
"""Zaheer et al. 2020, section 2: blocks of 4; a query block sees itself and one block on each side, the first block (which sees all), and
the random blocks of its row of the table, as one set of keys."""
import numpy as np
from zoo import check, f64, softmax, uniform


def oracle(inputs, weights, block=4, window=1, count=1):
    q, k, v = f64(inputs["q"], inputs["k"], inputs["v"])
    n = q.shape[2]
    blocks = -(-n // block)
    out = np.zeros(q.shape[:3] + v.shape[3:])
    for x in range(blocks):
        seen = set(range(x - window, x + window + 1)) | set(range(count)) | set(inputs["random"][x])
        if x < count:
            seen = set(range(blocks))
        keys = [j for y in sorted(seen) for j in range(y * block, (y + 1) * block) if 0 <= j < n]
        part = slice(x * block, min(n, (x + 1) * block))
        out[:, :, part] = softmax(q[:, :, part] @ k[:, :, keys].swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v[:, :, keys]
    return {"o": out}


rng = np.random.default_rng(311)
cases = []
for b, h, n, e, f, r in [(2, 2, 42, 8, 5, 2), (1, 1, 203, 16, 16, 3), (1, 1, 7, 4, 4, 1), (1, 1, 1, 4, 6, 1), (1, 1, 29, 4, 4, 0)]:
    blocks = -(-n // 4)
    inputs = dict(q=uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f))
    cases.append((inputs | dict(random=rng.integers(0, blocks, (blocks, r)).astype(np.int32)), None))
check("sparse/bigbird", oracle, cases)
