# RUN: %python %s heedc
"""Fan et al. 2021, section 3.1, and Li et al. 2022, equations 2 to 4, one image and one token at a time: strided depthwise convolutions over a padded
map, relative positions looked up for each pair, the pooled query added."""
import math

import numpy as np
from zoo import check, feed_forward_weights, layer_norm, linear, linear_weights, norm_weights, softmax, uniform

C, HEADS, STRIDE = 8, [1, 2], [4, 2]


def windows(x, size, stride, fill):
    """Lists of the windows of x (Y x X x C) as arrays size x size x C, padded by size // 2."""
    pad = size // 2
    y = np.pad(x, ((pad, pad), (pad, pad), (0, 0)), constant_values=fill)
    return [[y[r : r + size, c : c + size] for c in range(0, x.shape[1], stride)] for r in range(0, x.shape[0], stride)]


def pool(x, stride, w, at):
    kernel = w[at + ".weight"].astype(np.float64)
    y = np.array([[np.einsum("uvc,cuv->c", t, kernel) for t in row] for row in windows(x, 3, stride, 0)])
    return layer_norm(y, w, at + ".norm")


def attention(x, count, sq, sk, w, at):
    parts = []
    for q, k, v in zip(*(np.split(linear(x, w, f"{at}.{n}"), count, -1) for n in ("query", "key", "value"))):
        q, k, v = pool(q, sq, w, at + ".pool.query"), pool(k, sk, w, at + ".pool.key"), pool(v, sk, w, at + ".pool.value")
        ratio, e = sk // sq, q.shape[-1]
        rows, columns = w[at + ".rows"].astype(np.float64), w[at + ".columns"].astype(np.float64)
        places = [(i, j) for i in range(k.shape[0]) for j in range(k.shape[1])]
        out = np.zeros_like(q)
        for n in range(q.shape[0]):
            for m in range(q.shape[1]):
                R = np.array([rows[n - ratio * (i - k.shape[0] + 1)] + columns[m - ratio * (j - k.shape[1] + 1)] for i, j in places])
                s = k.reshape(-1, e) @ q[n, m] / np.sqrt(e) + R @ q[n, m]
                out[n, m] = softmax(s) @ v.reshape(-1, e) + q[n, m]
        parts.append(out)
    return linear(np.concatenate(parts, -1), w, at + ".output")


def oracle(inputs, w):
    out = []
    for image in inputs["image"].astype(np.float64):
        kernel = w["patch.weight"].astype(np.float64)
        x = np.array([[np.einsum("uvk,ckuv->c", t, kernel) for t in row] for row in windows(image, 7, 4, 0)]) + w["patch.bias"]
        for stage in range(2):
            for l in range(2):
                at = f"stage.{stage}.{l}"
                z = layer_norm(x, w, at + ".norm1")
                first = (stage, l) == (1, 0)
                a = attention(z, HEADS[stage], 2 if first else 1, STRIDE[stage] * (2 if first else 1), w, at)
                if first:
                    x = np.array([[t.max((0, 1)) for t in row] for row in windows(linear(z, w, at + ".skip"), 3, 2, -np.inf)])
                x = x + a
                u = linear(layer_norm(x, w, at + ".norm2"), w, at + ".ffn.up")
                x = x + linear(u * (1 + np.vectorize(math.erf)(u / math.sqrt(2))) / 2, w, at + ".ffn.down")
        out.append(linear(layer_norm(x, w, "norm").mean((0, 1)), w, "head"))
    return {"y": np.array(out)}


rng = np.random.default_rng(604)
cases = []
for b, height, width, channels in [(2, 32, 24, 3), (1, 51, 48, 1), (1, 3, 1, 1)]:
    w = {"patch.weight": uniform(rng, C, channels, 7, 7) / np.float32(7), "patch.bias": uniform(rng, C)}
    sides, d = ((height + 3) // 4, (width + 3) // 4), C
    for stage in range(2):
        for l in range(2):
            at, into = f"stage.{stage}.{l}", d
            if (stage, l) == (1, 0):
                d, sides = 2 * d, tuple((s + 1) // 2 for s in sides)
                w |= linear_weights(rng, at + ".skip", d, into)
            for n in ("query", "key", "value"):
                w |= linear_weights(rng, f"{at}.{n}", d, into)
                w |= {f"{at}.pool.{n}.weight": uniform(rng, C, 3, 3) / np.float32(3)} | norm_weights(rng, f"{at}.pool.{n}.norm", C)
            for n, side in zip(("rows", "columns"), sides):
                w |= {f"{at}.{n}": uniform(rng, 2 * side - 1, C) * np.float32(0.3)}
            w |= linear_weights(rng, at + ".output", d, d) | feed_forward_weights(rng, at + ".ffn.", d, 4 * d)
            w |= norm_weights(rng, at + ".norm1", into) | norm_weights(rng, at + ".norm2", d)
    w |= norm_weights(rng, "norm", d) | linear_weights(rng, "head", 10, d)
    cases.append((dict(image=uniform(rng, b, height, width, channels)), w))
check("vision/mvit", oracle, cases)
