# RUN: %python %s heedc
"""Liu et al. 2021, section 3, without roll and mask: a token of a shifted layer attends to the tokens of its window, where windows begin at shift - M
and those at the borders are cut off; the bias follows the offset in rows and columns."""
import math

import numpy as np
from zoo import check, layer_norm, linear, linear_weights, norm_weights, softmax, uniform

P, M, C, HEADS = 4, 7, 8, [2, 4]


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def attention(x, weights, at, count, shift):
    height, width, c = x.shape
    e = c // count
    q, k, v = (linear(x, weights, f"{at}.{n}").reshape(height, width, count, e) for n in ("query", "key", "value"))
    table = weights[at + ".bias"].astype(np.float64)
    out = np.zeros((height, width, count, e))
    starts = lambda size: [(max(0, a), min(size, a + M)) for a in range(shift - M, size, M) if a + M > 0]
    for top, bottom in starts(height):
        for left, right in starts(width):
            places = [(r, s) for r in range(top, bottom) for s in range(left, right)]
            r, s = np.array(places).T
            for h in range(count):
                bias = table[r[:, None] - r + M - 1, s[:, None] - s + M - 1, h]
                out[r, s, h] = softmax(q[r, s, h] @ k[r, s, h].T / np.sqrt(e) + bias) @ v[r, s, h]
    return linear(out.reshape(x.shape), weights, at + ".output")


def oracle(inputs, weights):
    out = []
    for image in inputs["image"].astype(np.float64):
        rows, columns = image.shape[0] // P, image.shape[1] // P
        x = np.stack([[image[r * P : r * P + P, s * P : s * P + P].reshape(-1) for s in range(columns)] for r in range(rows)])
        x = layer_norm(linear(x, weights, "embedding"), weights, "embedding.norm")
        for stage in range(2):
            if stage:
                x = np.concatenate([x[0::2, 0::2], x[1::2, 0::2], x[0::2, 1::2], x[1::2, 1::2]], -1)
                x = layer_norm(x, weights, "stage.1.merge.norm") @ weights["stage.1.merge.weight"].astype(np.float64).T
            for l in range(2):
                at = f"stage.{stage}.{l}."
                shift = 3 if (stage, l) == (0, 1) else 0
                x = x + attention(layer_norm(x, weights, at + "norm1"), weights, at + "self", HEADS[stage], shift)
                x = x + linear(gelu(linear(layer_norm(x, weights, at + "norm2"), weights, at + "ffn.up")), weights, at + "ffn.down")
        out.append(linear(layer_norm(x, weights, "norm").mean((0, 1)), weights, "head"))
    return {"y": np.stack(out)}


rng = np.random.default_rng(122)
cases = []
for b, height, width, channels in [(1, 112, 56, 3), (2, 56, 56, 1)]:
    weights = linear_weights(rng, "embedding", C, P * P * channels) | norm_weights(rng, "embedding.norm", C)
    weights |= norm_weights(rng, "stage.1.merge.norm", 4 * C) | {"stage.1.merge.weight": uniform(rng, 2 * C, 4 * C) * np.float32((4 * C) ** -0.5)}
    for stage in range(2):
        d = C << stage
        for at in (f"stage.{stage}.{l}." for l in range(2)):
            for name in ("query", "key", "value", "output"):
                weights |= linear_weights(rng, at + "self." + name, d, d)
            weights |= {at + "self.bias": uniform(rng, 2 * M - 1, 2 * M - 1, HEADS[stage])}
            weights |= linear_weights(rng, at + "ffn.up", 4 * d, d) | linear_weights(rng, at + "ffn.down", d, 4 * d)
            weights |= norm_weights(rng, at + "norm1", d) | norm_weights(rng, at + "norm2", d)
    weights |= norm_weights(rng, "norm", 2 * C) | linear_weights(rng, "head", 10, 2 * C)
    cases.append((dict(image=uniform(rng, b, height, width, channels)), weights))
check("vision/swin", oracle, cases)
