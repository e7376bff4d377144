# RUN: %python %s heedc
"""Yan et al. 2020, sections 3.1 and 3.2: four encoder layers side by side on the input, on rows with a pair swapped, on shuffled rows, on rows
replaced by a mask; noise as matrices that multiply the rows."""
import numpy as np
from zoo import attention_weights, check, feed_forward, feed_forward_weights, layer_norm, multi_head, norm_weights, uniform


def layer(x, w, at):
    x = layer_norm(x + multi_head(x, x, w, 4, at + "attention."), w, at + "norm1")
    return layer_norm(x + feed_forward(x, w, at + "ffn."), w, at + "norm2")


def oracle(inputs, w):
    x = inputs["x"].astype(np.float64)
    eye = np.eye(x.shape[1])
    for l in range(2):
        at = f"layer.{l}."
        noisy = [x] + [eye[inputs["order"][l, k]] @ x for k in range(2)]
        gone = inputs["masked"][l].astype(np.float64)[..., None]
        noisy.append(x * (1 - gone) + gone * w[at + "mask"])
        x = sum(float(a) * layer(y, w, f"{at}unit.{k}.") for k, (a, y) in enumerate(zip(w[at + "alpha"], noisy)))
    return {"y": x}


rng = np.random.default_rng(615)
cases = []
for b, n, d in [(2, 13, 16), (1, 1, 8), (1, 139, 8)]:
    order = np.tile(np.arange(n, dtype=np.int32), (2, 2, b, 1))
    for l in range(2):
        for row in range(b):
            k = rng.integers(0, n)
            other = min(k + 3, n - 1)
            order[l, 0, row, [k, other]] = order[l, 0, row, [other, k]]
            order[l, 1, row, k : k + 3] = rng.permutation(order[l, 1, row, k : k + 3])
    w = {}
    for at in ("layer.0.", "layer.1."):
        w |= {at + "alpha": uniform(rng, 4), at + "mask": uniform(rng, d)}
        for to in (f"{at}unit.{k}." for k in range(4)):
            w |= attention_weights(rng, to + "attention.", d) | feed_forward_weights(rng, to + "ffn.", d, 64)
            w |= norm_weights(rng, to + "norm1", d) | norm_weights(rng, to + "norm2", d)
    cases.append((dict(x=uniform(rng, b, n, d), order=order, masked=rng.random((2, b, n)) < 0.2), w))
check("whole-model/multi-unit", oracle, cases)
