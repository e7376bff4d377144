# RUN: %python %s heedc
"""Carion et al. 2020, section 3.2, appendices A.3 and A.4: positions on queries and keys of each attention, not on values; objects in parallel."""
import numpy as np
from zoo import check, heads, layer_norm, linear, linear_weights, merge, norm_weights, softmax, uniform

D = 32


def attend(q, k, v, weights, at):
    q, k, v = (heads(linear(x[None], weights, f"{at}.{n}"), 4) for x, n in ((q, "query"), (k, "key"), (v, "value")))
    return linear(merge(softmax(q @ k.swapaxes(2, 3) / np.sqrt(D / 4)) @ v), weights, at + ".output")[0]


def wave(p):
    """D/2 numbers for one coordinate."""
    z = np.exp(1j * p / 10000.0 ** (np.arange(0, D // 2, 2) / (D // 2)))
    return np.stack([z.imag, z.real], -1).reshape(-1)


def ffn(x, weights, at):
    return linear(np.maximum(linear(x, weights, at + ".up"), 0), weights, at + ".down")


def oracle(inputs, weights):
    classes, boxes = [], []
    objects = weights["objects.weight"].astype(np.float64)
    for f in inputs["f"].astype(np.float64):
        c, rows, columns = f.shape
        x = linear(f.reshape(c, -1).T, weights, "input")
        p = np.array([np.concatenate([wave(r), wave(s)]) for r in range(rows) for s in range(columns)])
        for at in ("encoder.0.", "encoder.1."):
            x = layer_norm(x + attend(x + p, x + p, x, weights, at + "self"), weights, at + "norm1")
            x = layer_norm(x + ffn(x, weights, at + "ffn"), weights, at + "norm2")
        y = np.zeros(objects.shape)
        for at in ("decoder.0.", "decoder.1."):
            y = layer_norm(y + attend(y + objects, y + objects, y, weights, at + "self"), weights, at + "norm1")
            y = layer_norm(y + attend(y + objects, x + p, x, weights, at + "cross"), weights, at + "norm2")
            y = layer_norm(y + ffn(y, weights, at + "ffn"), weights, at + "norm3")
        y = layer_norm(y, weights, "norm")
        classes.append(softmax(linear(y, weights, "class")))
        for k in range(2):
            y = np.maximum(linear(y, weights, f"box.{k}"), 0)
        boxes.append(1 / (1 + np.exp(-linear(y, weights, "box.2"))))
    return {"p": np.stack(classes), "box": np.stack(boxes)}


rng = np.random.default_rng(123)
cases = []
for b, c, rows, columns, objects in [(2, 12, 3, 5, 7), (1, 5, 12, 11, 133), (1, 1, 1, 1, 1)]:
    weights = linear_weights(rng, "input", D, c) | {"objects.weight": uniform(rng, objects, D)} | norm_weights(rng, "norm", D)
    for side, kinds, norms in (("encoder", ("self",), 2), ("decoder", ("self", "cross"), 3)):
        for at in (f"{side}.{l}." for l in range(2)):
            for name in (f"{at}{kind}.{n}" for kind in kinds for n in ("query", "key", "value", "output")):
                weights |= linear_weights(rng, name, D, D)
            weights |= linear_weights(rng, at + "ffn.up", 64, D) | linear_weights(rng, at + "ffn.down", D, 64)
            for k in range(norms):
                weights |= norm_weights(rng, f"{at}norm{k + 1}", D)
    weights |= linear_weights(rng, "class", 11, D) | linear_weights(rng, "box.2", 4, D)
    weights |= linear_weights(rng, "box.0", D, D) | linear_weights(rng, "box.1", D, D)
    cases.append((dict(f=uniform(rng, b, c, rows, columns)), weights))
check("vision/detr", oracle, cases)
