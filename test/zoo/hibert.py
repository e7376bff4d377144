# RUN: %python %s heedc
"""Zhang et al. 2019, section 3.1: each sentence without its padding through an encoder, whose last row stands for it; the sentences through another.
What stands behind the last sentence is compared as a query of the real ones."""
import math

import numpy as np
from zoo import check, encoder_weights, layer_norm, linear, multi_head, uniform


def sinusoid(x):
    n, d = x.shape
    t = np.exp(1j * np.arange(n)[:, None] / 10000.0 ** (np.arange(0, d, 2) / d))
    return x + np.stack([t.imag, t.real], -1).reshape(n, d)


def encode(x, length, w, at):
    """All rows are queries, the first `length` are keys."""
    for l in range(2):
        x = layer_norm(x + multi_head(x[None], x[None, :length], w, 4, f"{at}.{l}.self.")[0], w, f"{at}.{l}.norm1")
        u = linear(x, w, f"{at}.{l}.ffn.up")
        x = layer_norm(x + linear(u * (1 + np.vectorize(math.erf)(u / math.sqrt(2))) / 2, w, f"{at}.{l}.ffn.down"), w, f"{at}.{l}.norm2")
    return x


def sentence(ids, count, w):
    if count == 0:
        return np.zeros(w["embedding.weight"].shape[1])
    return encode(sinusoid(w["embedding.weight"].astype(np.float64)[ids[:count]]), count, w, "sentence")[-1]


def oracle(inputs, w):
    rows = []
    for ids, words, count in zip(inputs["ids"], inputs["words"], inputs["count"]):
        rows.append(encode(sinusoid(np.array([sentence(i, n, w) for i, n in zip(ids, words)])), count, w, "document"))
    return {"d": np.array(rows)}


def draw(rng, d, words):
    w = {"embedding.weight": uniform(rng, words, d)}
    names = {"query": "self.query", "key": "self.key", "value": "self.value", "output": "self.output", "up": "ffn.up", "down": "ffn.down"}
    for at in ("sentence", "document"):
        for name, value in encoder_weights(rng, 2, d).items():
            _, l, part, kind = name.split(".")
            w[f"{at}.{l}.{names.get(part, part)}.{kind}"] = value
    return w


rng = np.random.default_rng(613)
cases = []
SHAPES = [([[7, 3, 1], [5, 2, 0]], 7, [3, 2], 16), ([[1]], 1, [1], 8),
          ([[131, 70], [140, 0]], 140, [2, 0], 8), ([[2] * 133], 2, [130], 8)]
for words, size, counts, d in SHAPES:
    ids = rng.integers(0, 9, (len(words), len(words[0]), size)).astype(np.int32)
    cases.append((dict(ids=ids, words=np.array(words, np.int32), count=np.array(counts, np.int32)), draw(rng, d, 9)))
check("whole-model/hibert", oracle, cases)
