# RUN: %python %s heedc
"""Cornia et al. 2020, equations 2 to 8, one image at a time, regions without their padding (NaN here): memory rows behind keys and values, gates by a
matrix on the joined [Y, C]."""
import numpy as np
from zoo import (attention_weights, check, feed_forward, feed_forward_weights, heads, layer_norm, linear, linear_weights, merge, multi_head,
                 norm_weights, softmax, uniform)


def memory_attention(x, w, at):
    q, k, v = (heads(linear(x[None], w, at + n), 4)[0] for n in ("query", "key", "value"))
    k, v = (np.concatenate([t, w[at + "memory." + n].astype(np.float64)], 1) for t, n in ((k, "key"), (v, "value")))
    p = softmax(np.einsum("hie,hje->hij", q, k) / np.sqrt(q.shape[-1]))
    return linear(merge(np.einsum("hij,hje->hie", p, v)[None])[0], w, at + "output")


def positions(n, d):
    t = np.exp(1j * np.arange(n)[:, None] / 10000.0 ** (np.arange(0, d, 2) / d))
    return np.stack([t.imag, t.real], -1).reshape(n, d)


def oracle(inputs, w):
    out = []
    for regions, length, caption in zip(inputs["regions"].astype(np.float64), inputs["length"], inputs["caption"]):
        x = linear(regions[:length], w, "input")
        levels = []
        for at in ("encoder.0.", "encoder.1."):
            x = layer_norm(x + memory_attention(x, w, at + "self."), w, at + "norm1")
            x = layer_norm(x + feed_forward(x, w, at + "ffn."), w, at + "norm2")
            levels.append(x)
        y = w["embedding.weight"].astype(np.float64)[caption]
        y = y + positions(*y.shape)
        for at in ("decoder.0.", "decoder.1."):
            y = layer_norm(y + multi_head(y[None], y[None], w, 4, at + "self.", np.tri(len(y), dtype=bool))[0], w, at + "norm1")
            m = 0
            for i, level in enumerate(levels):
                c = multi_head(y[None], level[None], w, 4, at + "cross.")[0]
                m = m + c / (1 + np.exp(-linear(np.concatenate([y, c], 1), w, f"{at}gate.{i}")))
            y = layer_norm(y + m, w, at + "norm2")
            y = layer_norm(y + feed_forward(y, w, at + "ffn."), w, at + "norm3")
        out.append(linear(y, w, "head"))
    return {"logits": np.array(out)}


rng = np.random.default_rng(608)
cases = []
SHAPES = [([7, 3], 7, 5, 9, 3, 16, 6), ([131], 140, 133, 3, 5, 8, 4), ([1], 1, 1, 1, 1, 8, 3), ([0, 2], 2, 3, 2, 4, 8, 3)]
for lengths, n, t, f, rows, d, words in SHAPES:
    regions = uniform(rng, len(lengths), n, f)
    for b, length in enumerate(lengths):
        regions[b, length:] = np.nan
    w = {"embedding.weight": uniform(rng, words, d)} | linear_weights(rng, "input", d, f) | linear_weights(rng, "head", words, d)
    for l in range(2):
        at, to = f"encoder.{l}.", f"decoder.{l}."
        for name in (at + "self.", to + "self.", to + "cross."):
            w |= attention_weights(rng, name, d)
        w |= {at + "self.memory.key": uniform(rng, 4, rows, d // 4), at + "self.memory.value": uniform(rng, 4, rows, d // 4)}
        w |= feed_forward_weights(rng, at + "ffn.", d, 64) | feed_forward_weights(rng, to + "ffn.", d, 64)
        for i in range(2):
            w |= linear_weights(rng, f"{to}gate.{i}", d, 2 * d) | norm_weights(rng, f"{at}norm{i + 1}", d)
        for i in range(3):
            w |= norm_weights(rng, f"{to}norm{i + 1}", d)
    caption = rng.integers(0, words, (len(lengths), t)).astype(np.int32)
    cases.append((dict(regions=regions, length=np.array(lengths, np.int32), caption=caption), w))
check("multimodal/m2-transformer", oracle, cases)
