# RUN: %python %s heedc
"""Lewis et al. 2020, section 2.1: encoder-decoder with learned positions and a norm on the embeddings, GELU; sentences without their padding."""
import math

import numpy as np
from zoo import check, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)))


def embed(ids, weights, side):
    x = weights["embedding.weight"].astype(np.float64)[ids] + weights[f"{side}.positions.weight"][: len(ids)]
    return layer_norm(x, weights, side + ".norm")[None]


def sublayer(x, f, weights, at):
    return layer_norm(x + f, weights, at)


def ffn(x, weights, at):
    return linear(gelu(linear(x, weights, at + "ffn.up")), weights, at + "ffn.down")


def oracle(inputs, weights):
    out = []
    for source, length, target in zip(inputs["source"], inputs["length"], inputs["target"]):
        x, y = embed(source[:length], weights, "encoder"), embed(target, weights, "decoder")
        for at in ("encoder.0.", "encoder.1."):
            x = sublayer(x, multi_head(x, x, weights, 4, at + "self."), weights, at + "norm1")
            x = sublayer(x, ffn(x, weights, at), weights, at + "norm2")
        for at in ("decoder.0.", "decoder.1."):
            y = sublayer(y, multi_head(y, y, weights, 4, at + "self.", np.tri(len(target), dtype=bool)), weights, at + "norm1")
            y = sublayer(y, multi_head(y, x, weights, 4, at + "cross."), weights, at + "norm2")
            y = sublayer(y, ffn(y, weights, at), weights, at + "norm3")
        out.append(y[0] @ weights["embedding.weight"].astype(np.float64).T)
    return {"logits": np.stack(out)}


def draw(rng, words, d, positions):
    weights = {"embedding.weight": uniform(rng, words, d)}
    for side, kinds, norms, rows in (("encoder", ("self",), 2, positions), ("decoder", ("self", "cross"), 3, positions + 3)):
        weights |= {f"{side}.positions.weight": uniform(rng, rows, d)} | norm_weights(rng, side + ".norm", d)
        for at in (f"{side}.{l}." for l in range(2)):
            for kind in kinds:
                for name in ("query", "key", "value", "output"):
                    weights |= linear_weights(rng, f"{at}{kind}.{name}", d, d)
            weights |= linear_weights(rng, at + "ffn.up", 64, d) | linear_weights(rng, at + "ffn.down", d, 64)
            for k in range(norms):
                weights |= norm_weights(rng, f"{at}norm{k + 1}", d)
    return weights


rng = np.random.default_rng(115)
cases = []
for lengths, n, t, d, words in [([7, 3], 7, 5, 16, 11), ([131], 131, 140, 8, 23), ([1], 1, 1, 8, 3), ([0, 4], 5, 3, 16, 7)]:
    source, target = (rng.integers(0, words, (len(lengths), m)).astype(np.int32) for m in (n, t))
    cases.append((dict(source=source, length=np.array(lengths, np.int32), target=target), draw(rng, words, d, max(n, t))))
check("whole-model/bart", oracle, cases)
