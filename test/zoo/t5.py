# RUN: %python %s heedc
"""Raffel et al. 2020, section 2.1: norm of scale alone before each sublayer, no biases, unscaled scores with a bias by bucket; decoder's buckets for
the past alone; logits by the embedding, times D^-1/2. Sentences without their padding."""
import math

import numpy as np
from zoo import check, heads, merge, softmax, uniform

E = 8


def bucket(offset, buckets, both, span=128):
    base = 0
    if both:
        buckets //= 2
        base = buckets if offset > 0 else 0
        distance = abs(offset)
    else:
        distance = max(-offset, 0)
    exact = buckets // 2
    if distance < exact:
        return base + distance
    return base + min(buckets - 1, exact + int(math.log(distance / exact) / math.log(span / exact) * (buckets - exact)))


def bias(table, n, both):
    index = np.array([[bucket(j - i, len(table), both) for j in range(n)] for i in range(n)], int).reshape(n, n)
    return table[index].transpose(2, 0, 1)


def norm(x, g):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g


def oracle(inputs, weights):
    w = {name.removesuffix(".weight"): a.astype(np.float64) for name, a in weights.items()}
    count = w["encoder.bias"].shape[1]

    def attend(x, memory, at, extra, live=None):
        q, k, v = (heads((y @ w[f"{at}.{n}"].T)[None], count)[0] for y, n in ((x, "query"), (memory, "key"), (memory, "value")))
        return merge((softmax(q @ k.swapaxes(1, 2) + extra, live) @ v)[None])[0] @ w[at + ".output"].T

    def ffn(x, at):
        return np.maximum(x @ w[at + ".up"].T, 0) @ w[at + ".down"].T

    out = []
    for source, length, target in zip(inputs["source"], inputs["length"], inputs["target"]):
        x, y = w["shared"][source[:length]], w["shared"][target]
        for l in range(2):
            m = norm(x, w[f"encoder.{l}.norm1"])
            x = x + attend(m, m, f"encoder.{l}.self", bias(w["encoder.bias"], len(x), True))
            x = x + ffn(norm(x, w[f"encoder.{l}.norm2"]), f"encoder.{l}.ffn")
        x = norm(x, w["encoder.norm"])
        for l in range(2):
            m = norm(y, w[f"decoder.{l}.norm1"])
            y = y + attend(m, m, f"decoder.{l}.self", bias(w["decoder.bias"], len(y), False), np.tri(len(y), dtype=bool))
            y = y + attend(norm(y, w[f"decoder.{l}.norm2"]), x, f"decoder.{l}.cross", 0)
            y = y + ffn(norm(y, w[f"decoder.{l}.norm3"]), f"decoder.{l}.ffn")
        out.append(norm(y, w["decoder.norm"]) @ w["shared"].T / np.sqrt(y.shape[1]))
    return {"logits": np.stack(out)}


def draw(rng, words, d, h, buckets):
    shapes = {"shared.weight": (words, d), "encoder.bias": (buckets, h), "decoder.bias": (buckets, h)}
    norms = ["encoder.norm", "decoder.norm"]
    for side, kinds in (("encoder", ("self",)), ("decoder", ("self", "cross"))):
        for at in (f"{side}.{l}." for l in range(2)):
            for kind in kinds:
                shapes |= {f"{at}{kind}.{n}.weight": (h * E, d) for n in ("query", "key", "value")} | {f"{at}{kind}.output.weight": (d, h * E)}
            shapes |= {at + "ffn.up.weight": (64, d), at + "ffn.down.weight": (d, 64)}
            norms += [f"{at}norm{k + 1}" for k in range(len(kinds) + 1)]
    weights = {name: uniform(rng, *s) for name, s in shapes.items()}
    for name, s in shapes.items():
        if name.startswith(("encoder.0", "encoder.1", "decoder.0", "decoder.1")):
            weights[name] *= np.float32(s[1] ** -0.5)
    return weights | {name + ".weight": uniform(rng, d) + 1 for name in norms}


rng = np.random.default_rng(117)
cases = []
shapes = [([7, 3], 7, 5, 16, 11, 4, 32), ([140], 140, 150, 8, 23, 2, 16), ([1], 1, 1, 5, 3, 1, 8), ([0, 4], 5, 3, 12, 7, 3, 32)]
for lengths, n, t, d, words, h, buckets in shapes:
    source, target = (rng.integers(0, words, (len(lengths), m)).astype(np.int32) for m in (n, t))
    cases.append((dict(source=source, length=np.array(lengths, np.int32), target=target), draw(rng, words, d, h, buckets)))
check("whole-model/t5", oracle, cases)
