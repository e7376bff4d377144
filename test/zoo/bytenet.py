# RUN: %python %s heedc
# RUN: %python %s heedc --set=masked=false --set=sets=1
"""Kalchbrenner et al. 2016, figure 3 left: h + Conv1x1(ReLU(LN(Conv1xk,r(ReLU(LN(Conv1x1(ReLU(LN(h))))))))), r = 1, 2, 4 in each set, then two more
1 x 1 convolutions with a ReLU between, and a softmax over the characters. Position by position; the sums run over taps counted backward from i."""
import sys

import numpy as np
from zoo import check, layer_norm, linear, linear_weights, norm_weights, softmax, uniform

MASKED = "--set=masked=false" not in sys.argv
SETS = 2 if MASKED else 1


def dilated(x, weights, at, rate):
    w, n = weights[at + ".weight"].astype(np.float64), len(x)
    taps = w.shape[2]
    y = np.tile(weights[at + ".bias"].astype(np.float64), (n, 1))
    for i in range(n):
        for back in range(taps):  # the last tap is the youngest row
            row = i - rate * back if MASKED else i + rate * (taps - 1 - taps // 2 - back)
            if 0 <= row < n:
                y[i] += w[:, :, taps - 1 - back] @ x[row]
    return y


def active(x, weights, at):
    return np.maximum(layer_norm(x, weights, at), 0)


def oracle(inputs, weights):
    out = []
    for ids in inputs["ids"]:
        h = weights["embedding.weight"][ids].astype(np.float64)
        for at in (f"set.{s}.block.{l}" for s in range(SETS) for l in range(3)):
            r = linear(active(h, weights, at + ".norm1"), weights, at + ".reduce")
            r = dilated(active(r, weights, at + ".norm2"), weights, at + ".conv", 1 << int(at[-1]))
            h = h + linear(active(r, weights, at + ".norm3"), weights, at + ".expand")
        out.append(softmax(linear(np.maximum(linear(h, weights, "top"), 0), weights, "logits")))
    return {"p": np.stack(out)}


rng = np.random.default_rng(613)
cases = []
for b, n, d, k, words in [(2, 21, 6, 3, 11), (1, 133, 4, 2, 7), (1, 1, 5, 3, 4), (1, 4, 3, 5, 1)]:
    weights = {"embedding.weight": uniform(rng, words, 2 * d)}
    weights |= linear_weights(rng, "top", 2 * d, 2 * d) | linear_weights(rng, "logits", words, 2 * d)
    for at in (f"set.{s}.block.{l}" for s in range(SETS) for l in range(3)):
        weights |= norm_weights(rng, at + ".norm1", 2 * d) | norm_weights(rng, at + ".norm2", d) | norm_weights(rng, at + ".norm3", d)
        weights |= linear_weights(rng, at + ".reduce", d, 2 * d) | linear_weights(rng, at + ".expand", 2 * d, d)
        weights |= {at + ".conv.weight": uniform(rng, d, d, k) * np.float32((d * k) ** -0.5), at + ".conv.bias": uniform(rng, d)}
    cases.append((dict(ids=rng.integers(0, words, (b, n)).astype(np.int32)), weights))
check("conv-hybrid/bytenet", oracle, cases)
