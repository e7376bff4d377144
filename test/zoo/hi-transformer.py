# RUN: %python %s heedc
"""Wu et al. 2021, section 2, one document at a time, each sentence without its padding: words and [CLS] row; [CLS] rows through the document's layer;
words and the row that came back; attention pooling of the words, then of the sentences."""
import math

import numpy as np
from zoo import attention_weights, check, feed_forward_weights, layer_norm, linear, linear_weights, multi_head, norm_weights, softmax, uniform


def sinusoid(x):
    n, d = x.shape
    t = np.exp(1j * np.arange(n)[:, None] / 10000.0 ** (np.arange(0, d, 2) / d))
    return x + np.stack([t.imag, t.real], -1).reshape(n, d)


def layer(x, w, at):
    x = layer_norm(x + multi_head(x[None], x[None], w, 4, at + ".self.")[0], w, at + ".norm1")
    u = linear(x, w, at + ".ffn.up")
    return layer_norm(x + linear(u * (1 + np.vectorize(math.erf)(u / math.sqrt(2))) / 2, w, at + ".ffn.down"), w, at + ".norm2")


def pool(x, w, at):
    return softmax(np.tanh(linear(x, w, at)) @ w[at + ".query"].astype(np.float64)) @ x


def oracle(inputs, w):
    out = []
    table = w["embedding.weight"].astype(np.float64)
    for ids, words, count in zip(inputs["ids"], inputs["words"], inputs["count"]):
        texts = [np.concatenate([sinusoid(table[i[:n]]), w["cls"]]) for i, n in zip(ids[:count], words)]
        for l in range(2):
            texts = [layer(x, w, f"first.{l}") for x in texts]
            if texts:
                r = layer(sinusoid(np.array([x[-1] for x in texts])), w, f"document.{l}.0")
            texts = [layer(np.concatenate([x[:-1], r[k : k + 1]]), w, f"second.{l}") for k, x in enumerate(texts)]
        pooled = np.array([pool(x[:-1], w, "pool.words") for x in texts]).reshape(-1, table.shape[1])
        out.append(pool(pooled, w, "pool.sentences"))
    return {"document": np.array(out)}


rng = np.random.default_rng(614)
cases = []
SHAPES = [([[7, 3, 1], [5, 2, 0]], 7, [3, 2], 16), ([[1]], 1, [1], 8),
          ([[131, 0], [140, 70]], 140, [2, 0], 8), ([[2] * 133], 2, [130], 8)]
for words, size, counts, d in SHAPES:
    w = {"embedding.weight": uniform(rng, 9, d), "cls": uniform(rng, 1, d)}
    for at in [f"{side}.{l}" for side in ("first", "second") for l in range(2)] + [f"document.{l}.0" for l in range(2)]:
        w |= attention_weights(rng, at + ".self.", d) | feed_forward_weights(rng, at + ".ffn.", d, 64)
        w |= norm_weights(rng, at + ".norm1", d) | norm_weights(rng, at + ".norm2", d)
    for at in ("pool.words", "pool.sentences"):
        w |= linear_weights(rng, at, d, d) | {at + ".query": uniform(rng, d)}
    ids = rng.integers(0, 9, (len(words), len(words[0]), size)).astype(np.int32)
    cases.append((dict(ids=ids, words=np.array(words, np.int32), count=np.array(counts, np.int32)), w))
check("whole-model/hi-transformer", oracle, cases)
