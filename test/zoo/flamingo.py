# RUN: %python %s heedc
"""Alayrac et al. 2022, section 2 and appendix A.1: resampled images one by one; each token attends to the rows of the last image whose mark stands at or
before it, a token before the first mark to nothing; tanh gates; then the layer of the language model."""
import math

import numpy as np
from zoo import attention_weights, check, feed_forward_weights, layer_norm, linear, multi_head, norm_weights, uniform


def attend(x, memory, w, at, live=None):
    return multi_head(x[None], memory[None], w, 4, at, live)[0]


def squared(x, w, at):
    return linear(np.maximum(linear(layer_norm(x, w, at + "norm"), w, at + "up"), 0) ** 2, w, at + "down")


def resample(features, w):
    z = w["resampler.latents"].astype(np.float64)
    for at in ("resampler.0.", "resampler.1."):
        q = layer_norm(z, w, at + "norm.latents")
        z = z + attend(q, np.concatenate([layer_norm(features, w, at + "norm.features"), q]), w, at + "self.")
        z = z + squared(z, w, at + "ffn.")
    return layer_norm(z, w, "resampler.norm")


def oracle(inputs, w):
    out = []
    table = w["embedding.weight"].astype(np.float64)
    for ids, images in zip(inputs["ids"], inputs["f"].astype(np.float64)):
        rows = [resample(image, w) for image in images]
        y = table[ids] + w["position.weight"][: len(ids)]
        count = np.cumsum(ids == 0)
        for l in range(2):
            x = layer_norm(y, w, f"gated.{l}.norm")
            a = np.zeros_like(x) + w[f"gated.{l}.cross.output.bias"]
            for n, c in enumerate(count):
                if 0 < c <= len(rows):
                    a[n] = attend(x[n : n + 1], rows[c - 1], w, f"gated.{l}.cross.")[0]
            y = y + np.tanh(float(w["gate.attention"][l])) * a
            y = y + np.tanh(float(w["gate.ffn"][l])) * squared(y, w, f"gated.{l}.ffn.")
            at = f"layer.{l}."
            x = layer_norm(y, w, at + "norm1")
            y = y + attend(x, x, w, at + "self.", np.tri(len(x), dtype=bool))
            u = linear(layer_norm(y, w, at + "norm2"), w, at + "ffn.up")
            y = y + linear(u * (1 + np.vectorize(math.erf)(u / math.sqrt(2))) / 2, w, at + "ffn.down")
        out.append(layer_norm(y, w, "norm") @ table.T)
    return {"logits": np.array(out)}


rng = np.random.default_rng(607)
cases = []
for b, n, images, s, r, d in [(2, 13, 3, 7, 4, 16), (1, 1, 1, 1, 1, 8), (1, 140, 3, 131, 67, 8), (2, 5, 1, 2, 3, 8)]:
    words = 5
    ids = rng.integers(1, words, (b, n)).astype(np.int32)
    for sentence in ids:
        sentence[rng.permutation(n)[: images]] = 0
    if (b, n) == (2, 5):
        ids[1] = 1  # no image in this one
    w = {"embedding.weight": uniform(rng, words, d), "position.weight": uniform(rng, n, d), "resampler.latents": uniform(rng, r, d)}
    w |= {"gate.attention": uniform(rng, 2), "gate.ffn": uniform(rng, 2)} | norm_weights(rng, "resampler.norm", d) | norm_weights(rng, "norm", d)
    for l in range(2):
        for at in (f"resampler.{l}.self.", f"gated.{l}.cross.", f"layer.{l}.self."):
            w |= attention_weights(rng, at, d)
        for at in (f"resampler.{l}.norm.latents", f"resampler.{l}.norm.features", f"resampler.{l}.ffn.norm", f"gated.{l}.norm", f"gated.{l}.ffn.norm"):
            w |= norm_weights(rng, at, d)
        w |= norm_weights(rng, f"layer.{l}.norm1", d) | norm_weights(rng, f"layer.{l}.norm2", d) | feed_forward_weights(rng, f"layer.{l}.ffn.", d, 64)
        for at in (f"resampler.{l}.ffn.", f"gated.{l}.ffn."):
            w |= feed_forward_weights(rng, at, d, 4 * d)
    cases.append((dict(ids=ids, f=uniform(rng, b, images, s, d)), w))
check("multimodal/flamingo", oracle, cases)
