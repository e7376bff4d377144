# RUN: %python %s heedc
"""Han et al. 2021, section 2, equations 3 to 9, one image and one patch at a time: words of a patch through the inner block, joined, projected and
added to the patch's row; then all rows through the outer block."""
import math

import numpy as np
from zoo import attention_weights, check, feed_forward_weights, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform

P, SIDE = 16, 4


def block(x, w, at, count):
    n = layer_norm(x, w, at + "norm1")
    x = x + multi_head(n[None], n[None], w, count, at + "self.")[0]
    u = linear(layer_norm(x, w, at + "norm2"), w, at + "ffn.up")
    return x + linear(u * (1 + np.vectorize(math.erf)(u / math.sqrt(2))) / 2, w, at + "ffn.down")


def oracle(inputs, w):
    out = []
    for image in inputs["image"].astype(np.float64):
        words = []
        for top in range(0, image.shape[0], P):
            for left in range(0, image.shape[1], P):
                patch = image[top : top + P, left : left + P]
                pieces = [patch[r : r + SIDE, c : c + SIDE].reshape(-1) for r in range(0, P, SIDE) for c in range(0, P, SIDE)]
                words.append(np.array(pieces) @ w["word.weight"].T.astype(np.float64) + w["word.position"])
        z = np.zeros((len(words) + 1, w["class"].shape[1]))
        z[0] = w["class"]
        z = z + w["sentence.position"]
        for l in range(2):
            words = [block(y, w, f"layer.{l}.inner.", 2) for y in words]
            for n, y in enumerate(words):
                z[n + 1] += linear(y.reshape(-1), w, f"layer.{l}.fc")
            z = block(z, w, f"layer.{l}.outer.", 4)
        out.append(linear(layer_norm(z[0], w, "norm"), w, "head"))
    return {"logits": np.array(out)}


rng = np.random.default_rng(601)
cases = []
for b, height, width, channels, c, d in [(2, 32, 48, 3, 6, 16), (1, 176, 192, 1, 2, 8), (1, 16, 16, 1, 4, 4)]:
    tokens = height // P * (width // P) + 1
    w = {"word.weight": uniform(rng, c, SIDE * SIDE * channels) / np.float32(SIDE), "word.position": uniform(rng, 16, c)}
    w |= {"class": uniform(rng, 1, d), "sentence.position": uniform(rng, tokens, d)} | norm_weights(rng, "norm", d) | linear_weights(rng, "head", 10, d)
    for l in range(2):
        w |= linear_weights(rng, f"layer.{l}.fc", d, 16 * c)
        for at, size in ((f"layer.{l}.inner.", c), (f"layer.{l}.outer.", d)):
            w |= attention_weights(rng, at + "self.", size) | feed_forward_weights(rng, at + "ffn.", size, 4 * size)
            w |= norm_weights(rng, at + "norm1", size) | norm_weights(rng, at + "norm2", size)
    cases.append((dict(image=uniform(rng, b, height, width, channels)), w))
check("vision/tnt", oracle, cases)
