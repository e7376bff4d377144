# RUN: %python %s heedc
"""Xiao and Zhu 2023, equation 51 with the sinusoids of 14 and 15: word vector + one vector for each tag + PE, word by word."""
import numpy as np
from zoo import check, uniform


def position(i, d):
    out = np.zeros(d)
    for k in range((d + 1) // 2):
        angle = i / 10000.0 ** (2 * k / d)
        out[2 * k] = np.sin(angle)
        if 2 * k + 1 < d:
            out[2 * k + 1] = np.cos(angle)
    return out


def oracle(inputs, weights):
    ids, tags = inputs["ids"], inputs["tags"]
    out = np.zeros(ids.shape + weights["word"].shape[1:])
    for b, n in np.ndindex(*ids.shape):
        out[b, n] = weights["word"][ids[b, n]] + position(n, out.shape[2])
        for kind in range(3):
            out[b, n] += weights[f"tag.{kind}"][tags[b, n, kind]]
    return {"e": out}


rng = np.random.default_rng(101)
cases = []
for b, n, d, words, sizes in [(2, 7, 5, 11, (4, 9, 2)), (1, 1, 8, 3, (1, 1, 1)), (1, 150, 4, 40, (17, 5, 30)), (2, 0, 4, 3, (2, 2, 2))]:
    weights = {"word": uniform(rng, words, d)} | {f"tag.{k}": uniform(rng, s, d) for k, s in enumerate(sizes)}
    tags = np.stack([rng.integers(0, s, (b, n)) for s in sizes], -1).astype(np.int32)
    cases.append((dict(ids=rng.integers(0, words, (b, n)).astype(np.int32), tags=tags), weights))
check("syntax/tag-embedding-sum", oracle, cases)
