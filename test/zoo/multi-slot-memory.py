# RUN: %python %s heedc
# RUN: %python %s heedc --set=size=1 --set=slots=3
# RUN: %python %s heedc --set=size=64 --set=slots=1
"""Xiao and Zhu 2023, section 5.2.2, without a memory that changes: the mean pairs of all full chunks stand before all words in one row of keys, and a
dense mask keeps, of query i in chunk c, the chunks c - slots .. c - 1 and the words of chunk c up to i."""
import sys

import numpy as np
from zoo import check, f64, softmax, uniform

option = lambda name, default: next((int(a.split("=")[-1]) for a in sys.argv if f"{name}=" in a), default)
SIZE, SLOTS = option("size", 8), option("slots", 4)


def oracle(inputs, _):
    q, k, v = f64(*(inputs[n] for n in ("q", "k", "v")))
    n, e = q.shape[2:]
    full = n // SIZE
    means = lambda x: x[:, :, : full * SIZE].reshape(*x.shape[:2], full, SIZE, x.shape[3]).mean(3)
    keys, values = (np.concatenate([means(x), x], 2) for x in (k, v))
    c, i = np.arange(full), np.arange(n)
    chunk = i[:, None] // SIZE
    live = np.concatenate([(chunk - SLOTS <= c) & (c < chunk), (i // SIZE == chunk) & (i <= i[:, None])], 1)
    return {"o": softmax(q @ keys.swapaxes(-1, -2) / np.sqrt(e), live) @ values}


rng = np.random.default_rng(612)
cases = []
for b, h, n, e, f in [(2, 3, 17, 5, 7), (1, 1, 1, 8, 1), (1, 2, 150, 16, 8), (2, 1, 0, 4, 4), (1, 1, 64, 9, 33), (3, 1, 5, 4, 4)]:
    cases.append((dict(q=2 * uniform(rng, b, h, n, e), k=uniform(rng, b, h, n, e), v=uniform(rng, b, h, n, f)), None))
check("recurrence/multi-slot-memory", oracle, cases)
