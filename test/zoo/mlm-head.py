# RUN: %python %s heedc
"""Devlin et al. 2019, section 3.1: log Pr(x_j) = log softmax(E LN(gelu(W h_j + b)) + c) at each masked position j. Positions come in any order and
may repeat; rows at no position hold NaN. A sentence may be one word, and no position may be masked."""
import math
import numpy as np
from zoo import check, layer_norm, linear, linear_weights, norm_weights, uniform

AT = "cls.predictions."


def oracle(inputs, weights):
    h, pos = inputs["h"].astype(np.float64), inputs["pos"]
    table = weights["embeddings.word_embeddings.weight"].astype(np.float64)
    logp, word = np.zeros(pos.shape + (len(table),)), np.zeros(pos.shape, np.int64)
    for b, k in np.ndindex(*pos.shape):
        u = linear(h[b, pos[b, k]], weights, AT + "transform.dense")
        u = np.array([x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in u])
        o = table @ layer_norm(u, weights, AT + "transform.LayerNorm", 1e-12) + weights[AT + "bias"]
        logp[b, k], word[b, k] = o - np.log(np.exp(o).sum()), o.argmax()
    return {"logp": logp, "word": word}


rng = np.random.default_rng(401)
cases = []
for b, n, k, d, v in [(2, 7, 3, 5, 11), (1, 1, 1, 4, 1), (1, 150, 140, 12, 37), (3, 9, 2, 16, 701), (2, 5, 0, 4, 9)]:
    pos = rng.integers(0, n, (b, k)).astype(np.int32)
    h = np.full((b, n, d), np.nan, np.float32)
    for r in range(b):
        for p in set(pos[r]):
            h[r, p] = uniform(rng, d)
    weights = {"embeddings.word_embeddings.weight": uniform(rng, v, d) * np.float32(d**-0.5), AT + "bias": uniform(rng, v)}
    weights |= linear_weights(rng, AT + "transform.dense", d, d) | norm_weights(rng, AT + "transform.LayerNorm", d)
    cases.append((dict(h=h, pos=pos), weights))
check("core/mlm-head", oracle, cases)
