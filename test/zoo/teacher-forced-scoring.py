# RUN: %python %s heedc
"""Xiao and Zhu 2023, equation 12, by its meaning: for each i a decoder runs on y_0 .. y_i-1 alone, and its last row gives the log-probability
of y_i."""
import numpy as np
from zoo import attention_weights, check, feed_forward, feed_forward_weights, layer_norm, multi_head, norm_weights, uniform


def decode(prefix, memory, w):
    """Log-probabilities of the next symbol."""
    table = w["embedding.weight"].astype(np.float64)
    d = table.shape[1]
    t = np.exp(1j * np.arange(len(prefix))[:, None] / 10000.0 ** (np.arange(0, d, 2) / d))
    y = np.sqrt(d) * table[prefix] + np.stack([t.imag, t.real], -1).reshape(-1, d)
    for at in ("0.", "1."):
        y = layer_norm(y + multi_head(y[None], y[None], w, 4, at + "self.", np.tri(len(y), dtype=bool))[0], w, at + "norm1")
        y = layer_norm(y + multi_head(y[None], memory[None], w, 4, at + "cross.")[0], w, at + "norm2")
        y = layer_norm(y + feed_forward(y, w, at + "ffn."), w, at + "norm3")
    s = table @ y[-1]
    return s - s.max() - np.log(np.exp(s - s.max()).sum())


def oracle(inputs, w):
    terms = np.zeros(inputs["target"].shape)
    for b, (memory, length, target, words) in enumerate(zip(*(inputs[n] for n in ("memory", "length", "target", "words")))):
        for i in range(min(words, len(target))):
            terms[b, i] = decode([0, *target[:i]], memory[:length].astype(np.float64), w)[target[i]]
    return {"log_p": terms, "score": terms.sum(1)}


rng = np.random.default_rng(617)
cases = []
SHAPES = [([7, 3], 7, [9, 4], 9, 16, 11), ([1], 1, [1], 1, 8, 2), ([131], 140, [135], 139, 4, 5), ([0, 2], 3, [2, 0], 2, 8, 3)]
for lengths, m, words, n, d, size in SHAPES:
    w = {"embedding.weight": uniform(rng, size, d) * np.float32(d**-0.5)}
    for at in ("0.", "1."):
        w |= attention_weights(rng, at + "self.", d) | attention_weights(rng, at + "cross.", d) | feed_forward_weights(rng, at + "ffn.", d, 64)
        for k in range(3):
            w |= norm_weights(rng, f"{at}norm{k + 1}", d)
    inputs = dict(memory=uniform(rng, len(lengths), m, d), length=np.array(lengths, np.int32), words=np.array(words, np.int32))
    cases.append((inputs | dict(target=rng.integers(0, size, (len(words), n)).astype(np.int32)), w))
check("decoding/teacher-forced-scoring", oracle, cases)
