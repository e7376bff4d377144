# RUN: %python %s heedc
"""Vaswani et al. 2017, sections 3.1 to 3.5, sentence by sentence and without padding: what lies behind length must not matter. A sentence that is
padding alone gives the decoder a cross-attention of zeros."""
import numpy as np
from zoo import check, layer_norm, linear, linear_weights, multi_head, norm_weights, softmax, uniform


def sinusoid(n, d):
    i = np.arange(n)[:, None] / 10000.0 ** (np.arange(0, d, 2) / d)
    return np.stack([np.sin(i), np.cos(i)], -1).reshape(n, d)


def ffn(x, weights, at):
    return linear(np.maximum(linear(x, weights, at + ".up"), 0), weights, at + ".down")


def oracle(inputs, weights):
    table = weights["embedding.weight"].astype(np.float64)
    d = table.shape[1]
    out = []
    for source, length, target in zip(inputs["source"], inputs["length"], inputs["target"]):
        x = (np.sqrt(d) * table[source[:length]] + sinusoid(length, d))[None]
        for l in range(2):
            at = f"encoder.{l}."
            x = layer_norm(x + multi_head(x, x, weights, 4, at + "self."), weights, at + "norm1")
            x = layer_norm(x + ffn(x, weights, at + "ffn"), weights, at + "norm2")
        t = len(target)
        y = (np.sqrt(d) * table[target] + sinusoid(t, d))[None]
        for l in range(2):
            at = f"decoder.{l}."
            y = layer_norm(y + multi_head(y, y, weights, 4, at + "self.", np.tri(t, dtype=bool)), weights, at + "norm1")
            y = layer_norm(y + multi_head(y, x, weights, 4, at + "cross."), weights, at + "norm2")
            y = layer_norm(y + ffn(y, weights, at + "ffn"), weights, at + "norm3")
        out.append(softmax(y[0] @ table.T))
    return {"p": np.stack(out)}


def draw(rng, words, d):
    weights = {"embedding.weight": uniform(rng, words, d) * np.float32(d**-0.5)}
    for side, kinds, norms in (("encoder", ("self",), 2), ("decoder", ("self", "cross"), 3)):
        for at in (f"{side}.{l}." for l in range(2)):
            for kind in kinds:
                for name in ("query", "key", "value", "output"):
                    weights |= linear_weights(rng, f"{at}{kind}.{name}", d, d)
            weights |= linear_weights(rng, at + "ffn.up", 64, d) | linear_weights(rng, at + "ffn.down", d, 64)
            for k in range(norms):
                weights |= norm_weights(rng, f"{at}norm{k + 1}", d)
    return weights


rng = np.random.default_rng(111)
cases = []
for lengths, n, t, d, words in [([7, 3], 7, 5, 16, 11), ([140], 140, 133, 8, 23), ([1], 1, 1, 8, 3), ([0, 4], 5, 3, 16, 7)]:
    b = len(lengths)
    source, target = (rng.integers(0, words, (b, m)).astype(np.int32) for m in (n, t))
    cases.append((dict(source=source, length=np.array(lengths, np.int32), target=target), draw(rng, words, d)))
check("whole-model/transformer-encdec", oracle, cases)
