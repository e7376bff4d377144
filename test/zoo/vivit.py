# RUN: %python %s heedc
"""Arnab et al. 2021, model 3, one video at a time: tubelets in reading order, attention inside each frame of tubelets, then at each place over time
(as loops), then the MLP; the mean goes to the head."""
import math

import numpy as np
from zoo import attention_weights, check, feed_forward_weights, layer_norm, linear, linear_weights, multi_head, norm_weights, uniform

F, P = 2, 16


def attend(x, w, at):
    n = layer_norm(x, w, at + "norm")[None]
    return x + multi_head(n, n, w, 4, at)[0]


def oracle(inputs, w):
    out = []
    for video in inputs["video"].astype(np.float64):
        frames, height, width, _ = video.shape
        z = []
        for t in range(0, frames, F):
            cubes = [video[t : t + F, r : r + P, s : s + P].reshape(-1) for r in range(0, height, P) for s in range(0, width, P)]
            z.append(np.array(cubes) @ w["embedding.weight"].astype(np.float64))
        z = np.array(z) + w["position"]
        for at in ("layer.0.", "layer.1."):
            z = np.stack([attend(z[t], w, at + "space.") for t in range(z.shape[0])], 0)
            z = np.stack([attend(z[:, n], w, at + "time.") for n in range(z.shape[1])], 1)
            u = linear(layer_norm(z, w, at + "norm"), w, at + "ffn.up")
            z = z + linear(u * (1 + np.vectorize(math.erf)(u / math.sqrt(2))) / 2, w, at + "ffn.down")
        out.append(linear(layer_norm(z, w, "norm").mean((0, 1)), w, "head"))
    return {"y": np.array(out)}


rng = np.random.default_rng(603)
cases = []
for b, frames, height, width, channels, d in [(2, 6, 32, 48, 3, 16), (1, 2, 176, 192, 1, 4), (1, 268, 16, 16, 1, 4), (1, 2, 16, 16, 1, 8)]:
    shape = (frames // F, height // P * (width // P), d)
    w = {"embedding.weight": uniform(rng, F * P * P * channels, d) / np.float32(P), "position": uniform(rng, *shape)}
    for at in ("layer.0.", "layer.1."):
        w |= feed_forward_weights(rng, at + "ffn.", d, 64) | norm_weights(rng, at + "norm", d)
        for name in ("space.", "time."):
            w |= attention_weights(rng, at + name, d) | norm_weights(rng, at + name + "norm", d)
    w |= norm_weights(rng, "norm", d) | linear_weights(rng, "head", 10, d)
    cases.append((dict(video=uniform(rng, b, frames, height, width, channels)), w))
check("vision/vivit", oracle, cases)
