# RUN: %python %s heedc --set=R=6 --set=G=12
# RUN: %python %s heedc --set=R=1 --set=G=2 --set=stages=2
"""Jiang et al. 2021, section 3: the generator, one image at a time; attention between the pixels of one grid cell, written as a mask over all pixels;
pixel shuffle by reshapes. The grid is larger than the first map (a single cell there), as large as the second, half of the third."""
import math
import sys

import numpy as np
from zoo import attention_weights, check, feed_forward_weights, heads, linear, linear_weights, merge, softmax, uniform

SETTING = dict(a.removeprefix("--set=").split("=") for a in sys.argv if a.startswith("--set="))
R, G, STAGES, C = int(SETTING["R"]), int(SETTING["G"]), int(SETTING.get("stages", 3)), 64


def norm(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def attention(x, side, cell, w, at):
    """x: side*side x D in reading order."""
    row, column = np.divmod(np.arange(side * side), side)
    q, k, v = (heads(linear(x[None], w, at + n), 2)[0] for n in ("query", "key", "value"))
    same = (row[:, None] // cell == row // cell) & (column[:, None] // cell == column // cell)
    dr, dc = (np.clip(t[:, None] - t, 1 - cell, cell - 1) + cell - 1 for t in (row, column))
    bias = w[at + "relative"].astype(np.float64)[dr, dc].transpose(2, 0, 1)
    p = softmax(q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1]) + bias, same)
    return linear(merge((p @ v)[None])[0], w, at + "output")


def oracle(inputs, w):
    out = []
    for z in inputs["noise"].astype(np.float64):
        side, x = R, linear(z, w, "input").reshape(R * R, C)
        for t in range(STAGES):
            if t:
                d = x.shape[1] // 4
                x = x.reshape(side, side, d, 2, 2).transpose(0, 3, 1, 4, 2).reshape(4 * side * side, d)
                side *= 2
            at = f"stage.{t}."
            x = x + w[at + "position"].reshape(side * side, -1)
            x = x + attention(norm(x), side, min(G, side), w, at + "0.self.")
            u = linear(norm(x), w, at + "0.ffn.up")
            x = x + linear(u * (1 + np.vectorize(math.erf)(u / math.sqrt(2))) / 2, w, at + "0.ffn.down")
        out.append(linear(x, w, "rgb").reshape(side, side, 3))
    return {"image": np.array(out)}


rng = np.random.default_rng(602)
cases = []
for b, size in [(2, 5), (1, 1)]:
    w = linear_weights(rng, "input", R * R * C, size)
    for t in range(STAGES):
        d, side, at = C >> 2 * t, R << t, f"stage.{t}."
        w |= {at + "position": uniform(rng, side, side, d), at + "0.self.relative": uniform(rng, *[2 * min(G, side) - 1] * 2, 2)}
        w |= attention_weights(rng, at + "0.self.", d) | feed_forward_weights(rng, at + "0.ffn.", d, 4 * d)
    w |= linear_weights(rng, "rgb", 3, d)
    cases.append((dict(noise=uniform(rng, b, size)), w))
check("vision/transgan", oracle, cases)
