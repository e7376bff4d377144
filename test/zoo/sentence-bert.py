# RUN: %python %s heedc
"""Reimers and Gurevych 2019, section 3, one sentence at a time without its padding; a sentence without a token is embedded as zeros, the cosine with
it is 0."""
import math

import numpy as np
from zoo import attention_weights, check, feed_forward_weights, layer_norm, linear, multi_head, norm_weights, softmax, uniform


def embed(ids, w):
    if len(ids) == 0:
        return np.zeros(w["embedding.weight"].shape[1])
    x = layer_norm(w["embedding.weight"].astype(np.float64)[ids] + w["position.weight"][: len(ids)], w, "norm")
    for at in ("layer.0.", "layer.1."):
        x = layer_norm(x + multi_head(x[None], x[None], w, 4, at + "self.")[0], w, at + "norm1")
        u = linear(x, w, at + "ffn.up")
        x = layer_norm(x + linear(u * (1 + np.vectorize(math.erf)(u / math.sqrt(2))) / 2, w, at + "ffn.down"), w, at + "norm2")
    return x.mean(0)


def oracle(inputs, w):
    one, two = (np.array([embed(ids[:n], w) for ids, n in zip(inputs[name], inputs[length])]) for name, length in
                (("first", "length1"), ("second", "length2")))
    product = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    cosine = (one * two).sum(1) / np.where(product > 0, product, 1)
    features = np.concatenate([one, two, abs(one - two)], 1)
    p = softmax(features @ w["classifier.weight"].T.astype(np.float64))
    return {"distance": np.linalg.norm(one - two, axis=1), "cosine": cosine, "p": p}


rng = np.random.default_rng(616)
cases = []
for one, n, two, m, d in [([7, 3], 7, [5, 9], 9, 16), ([1], 1, [1], 1, 8), ([131, 1], 140, [3, 133], 133, 8), ([0, 2], 2, [3, 0], 4, 8)]:
    w = {"embedding.weight": uniform(rng, 11, d), "position.weight": uniform(rng, max(n, m), d), "classifier.weight": uniform(rng, 3, 3 * d)}
    w |= norm_weights(rng, "norm", d)
    for at in ("layer.0.", "layer.1."):
        w |= attention_weights(rng, at + "self.", d) | feed_forward_weights(rng, at + "ffn.", d, 64)
        w |= norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    inputs = {"first": rng.integers(0, 11, (len(one), n)).astype(np.int32), "length1": np.array(one, np.int32)}
    inputs |= {"second": rng.integers(0, 11, (len(two), m)).astype(np.int32), "length2": np.array(two, np.int32)}
    cases.append((inputs, w))
check("whole-model/sentence-bert", oracle, cases)
