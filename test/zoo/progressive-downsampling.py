# RUN: %python %s heedc
"""Burchi and Vielzeuf 2021, sections 3.1 and 3.2: stage 0 has rows of 12 channels and attention over groups of 3 rows, a convolution of width 3 and stride
2 with a Swish leads to stage 1 of 24 channels and plain attention. In each sentence Q, K and V are padded to whole groups and reshaped to n/g x gd."""
import numpy as np
from zoo import attention_weights, check, feed_forward, feed_forward_weights, f64, layer_norm, linear, linear_weights, norm_weights, softmax, uniform

STAGES, HEADS, HIDDEN = [(12, 3), (24, 1)], 2, 32


def attention(x, real, g, weights, at):
    n, d = x.shape
    rows = -(-n // g)
    q, k, v = (np.vstack([linear(x, weights, at + name), np.zeros((rows * g - n, d))]).reshape(rows, g * d) for name in ("query", "key", "value"))
    live = np.array([g * j < real for j in range(rows)])
    o = np.hstack([softmax(q[:, part] @ k[:, part].T / np.sqrt(g * d // HEADS), live) @ v[:, part] for part in np.split(np.arange(g * d), HEADS)])
    return linear(o.reshape(rows * g, d)[:n], weights, at + "output")


def oracle(inputs, weights):
    out, lengths = [], []
    for x, real in zip(inputs["x"].astype(np.float64), inputs["length"]):
        y = linear(x, weights, "input")
        for s, (width, g) in enumerate(STAGES):
            at = f"stage.{s}."
            if s:
                w, = f64(weights[at + "downsample.weight"])
                padded = np.vstack([np.zeros(y.shape[1]), y[:real], np.zeros((len(y) - real + 3, y.shape[1]))])
                z = np.array([np.einsum("oiu,ui->o", w, padded[c:c + 3]) for c in range(0, len(y), 2)]) + weights[at + "downsample.bias"]
                y, real = z / (1 + np.exp(-z)), (real + 1) // 2
            y = layer_norm(y + attention(y, real, g, weights, at + "attention."), weights, at + "norm1")
            y = layer_norm(y + feed_forward(y, weights, at), weights, at + "norm2")
        out.append(y)
        lengths.append(real)
    return {"y": np.array(out), "lengths": np.array(lengths)}


rng = np.random.default_rng(418)
cases = []
for sizes, n, d in [([10, 4, 0], 10, 5), ([400], 400, 3), ([1], 1, 2), ([2, 11], 11, 7)]:
    weights = linear_weights(rng, "input", 12, d)
    weights |= {"stage.1.downsample.weight": uniform(rng, 24, 12, 3) / 6, "stage.1.downsample.bias": uniform(rng, 24)}
    for s, (width, g) in enumerate(STAGES):
        weights |= attention_weights(rng, f"stage.{s}.attention.", width) | feed_forward_weights(rng, f"stage.{s}.", width, HIDDEN)
        weights |= norm_weights(rng, f"stage.{s}.norm1", width) | norm_weights(rng, f"stage.{s}.norm2", width)
    cases.append((dict(x=uniform(rng, len(sizes), n, d), length=np.array(sizes, np.int32)), weights))
check("memory-compression/progressive-downsampling", oracle, cases)
