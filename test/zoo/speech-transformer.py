# RUN: %python %s heedc
"""Dong et al. 2018, section 3, and Di Gangi et al. 2019, equation 4, one recording at a time, without its padding (NaN here): convolutions as sums
over the nine shifted maps, log of the distance off the encoder's scores."""
import numpy as np
from zoo import (attention_weights, check, feed_forward, feed_forward_weights, heads, layer_norm, linear, linear_weights, merge, multi_head,
                 norm_weights, softmax, uniform)


def conv(x, w, at):
    rows, bands = -(-x.shape[0] // 2), -(-x.shape[1] // 2)
    padded = np.pad(x, ((1, 2), (1, 2), (0, 0)))
    y = np.zeros((rows, bands, len(w[at + ".bias"]))) + w[at + ".bias"]
    for u in range(3):
        for v in range(3):
            y += padded[u : u + 2 * rows : 2, v : v + 2 * bands : 2][:rows, :bands] @ w[at + ".weight"][:, :, u, v].T.astype(np.float64)
    return np.maximum(y, 0)


def sinusoid(x):
    n, d = x.shape
    t = np.exp(1j * np.arange(n)[:, None] / 10000.0 ** (np.arange(0, d, 2) / d))
    return x + np.stack([t.imag, t.real], -1).reshape(n, d)


def penalised(x, w, at):
    q, k, v = (heads(linear(x[None], w, at + n), 4) for n in ("query", "key", "value"))
    i = np.arange(len(x))
    with np.errstate(divide="ignore"):
        pi = np.where(np.eye(len(x)), 0, np.log(abs(i[:, None] - i)))
    return linear(merge(softmax(q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1]) - pi) @ v), w, at + "output")[0]


def oracle(inputs, w):
    out = []
    for audio, length, target in zip(inputs["audio"].astype(np.float64), inputs["length"], inputs["target"]):
        x = conv(conv(audio[:length, :, None], w, "conv.0"), w, "conv.1")
        x = sinusoid(linear(x.reshape(len(x), x.shape[1] * x.shape[2]), w, "input"))
        for at in ("encoder.0.", "encoder.1."):
            x = layer_norm(x + penalised(x, w, at + "self."), w, at + "norm1")
            x = layer_norm(x + feed_forward(x, w, at + "ffn."), w, at + "norm2")
        table = w["embedding.weight"].astype(np.float64)
        y = sinusoid(table[target] * np.sqrt(table.shape[1]))
        for at in ("decoder.0.", "decoder.1."):
            y = layer_norm(y + multi_head(y[None], y[None], w, 4, at + "self.", np.tri(len(y), dtype=bool))[0], w, at + "norm1")
            y = layer_norm(y + multi_head(y[None], x[None], w, 4, at + "cross.")[0], w, at + "norm2")
            y = layer_norm(y + feed_forward(y, w, at + "ffn."), w, at + "norm3")
        out.append(y @ table.T)
    return {"logits": np.array(out)}


rng = np.random.default_rng(605)
cases = []
for lengths, t, bands, n, d, words in [([23, 10, 1], 23, 7, 5, 16, 9), ([541], 550, 2, 133, 8, 5), ([1], 1, 1, 1, 8, 3), ([0, 6], 6, 5, 2, 8, 4)]:
    audio = uniform(rng, len(lengths), t, bands)
    for b, length in enumerate(lengths):
        audio[b, length:] = np.nan
    w = {"embedding.weight": uniform(rng, words, d) * np.float32(d**-0.5)} | linear_weights(rng, "input", d, 4 * -(-bands // 4))
    for k, into in ((0, 1), (1, 4)):
        w |= {f"conv.{k}.weight": uniform(rng, 4, into, 3, 3) / np.float32(3), f"conv.{k}.bias": uniform(rng, 4)}
    for at, kinds in [(f"encoder.{l}.", ("self.",)) for l in range(2)] + [(f"decoder.{l}.", ("self.", "cross.")) for l in range(2)]:
        for k, kind in enumerate(kinds):
            w |= attention_weights(rng, at + kind, d) | norm_weights(rng, f"{at}norm{k + 1}", d)
        w |= feed_forward_weights(rng, at + "ffn.", d, 64) | norm_weights(rng, f"{at}norm{len(kinds) + 1}", d)
    target = rng.integers(0, words, (len(lengths), n)).astype(np.int32)
    cases.append((dict(audio=audio, length=np.array(lengths, np.int32), target=target), w))
check("speech/speech-transformer", oracle, cases)
