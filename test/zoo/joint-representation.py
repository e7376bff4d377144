# RUN: %python %s heedc
"""Li et al. 2020, section 3, one pair at a time without the source's padding: columns of the grid one by one along the target, its rows one by one
along the source."""
import numpy as np
from zoo import attention_weights, check, feed_forward, feed_forward_weights, layer_norm, linear_weights, multi_head, norm_weights, softmax, uniform


def embed(ids, w, at):
    table = w[at + ".weight"].astype(np.float64)
    n, c = len(ids), table.shape[1]
    t = np.exp(1j * np.arange(n)[:, None] / 10000.0 ** (np.arange(0, c, 2) / c))
    return table[ids] * np.sqrt(c) + np.stack([t.imag, t.real], -1).reshape(n, c)


def oracle(inputs, w):
    out = []
    for source, length, target in zip(inputs["source"], inputs["length"], inputs["target"]):
        f, g = embed(source[:length], w, "source"), embed(target, w, "target")
        x = np.array([[np.concatenate([a, b]) for a in f] for b in g]).reshape(len(g), len(f), 2 * f.shape[1])
        past = np.tri(len(g), dtype=bool)
        for at in ("layer.0.", "layer.1."):
            a = layer_norm(x, w, at + "norm1")
            x = x + multi_head(a.swapaxes(0, 1), a.swapaxes(0, 1), w, 4, at + "target.", past).swapaxes(0, 1)
            a = layer_norm(x, w, at + "norm2")
            x = x + multi_head(a, a, w, 4, at + "source.")
            x = x + feed_forward(layer_norm(x, w, at + "norm3"), w, at + "ffn.")
        x = layer_norm(x, w, "norm")
        p = softmax((x @ w["reduce.weight"].T.astype(np.float64)).swapaxes(1, 2))
        out.append(np.einsum("tds,tsd->td", p, x) @ w["head.weight"].T.astype(np.float64))
    return {"logits": np.array(out)}


rng = np.random.default_rng(622)
cases = []
for lengths, s, t, c, words in [([7, 3], 7, 5, 8, 6), ([1], 1, 1, 4, 3), ([131], 133, 4, 4, 5), ([5], 6, 137, 4, 5), ([0, 2], 3, 3, 4, 4)]:
    d = 2 * c
    w = {"source.weight": uniform(rng, words, c), "target.weight": uniform(rng, words + 1, c), "head.weight": uniform(rng, words + 1, d)}
    w |= norm_weights(rng, "norm", d) | {"reduce.weight": linear_weights(rng, "r", d, d)["r.weight"]}
    for at in ("layer.0.", "layer.1."):
        w |= attention_weights(rng, at + "target.", d) | attention_weights(rng, at + "source.", d) | feed_forward_weights(rng, at + "ffn.", d, 64)
        for k in range(3):
            w |= norm_weights(rng, f"{at}norm{k + 1}", d)
    b = len(lengths)
    source, target = rng.integers(0, words, (b, s)).astype(np.int32), rng.integers(0, words + 1, (b, t)).astype(np.int32)
    cases.append((dict(source=source, length=np.array(lengths, np.int32), target=target), w))
check("whole-model/joint-representation", oracle, cases)
