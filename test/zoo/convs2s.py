# RUN: %python %s heedc
"""Gehring et al. 2017, sections 3.1 to 3.5, equations 1 and 2: GLU(W [rows] + b) + x, times sqrt(1/2); d_i = W_d h_i + b_d + g_i, a =
softmax(d_i z_j), c_i = sum a (z_j + e_j), times m sqrt(1/m), added to h_i. Sentences without their padding, over zero rows set around
them. An empty source: no c."""
import numpy as np
from zoo import check, linear, linear_weights, uniform


def gated(x, weights, at, before):
    w = weights[at + ".weight"].astype(np.float64)
    size, taps, d = len(x), w.shape[2], w.shape[1]
    padded = np.concatenate([np.zeros((before, d)), x, np.zeros((taps, d))])
    u = np.array([np.einsum("tc,oct->o", padded[i : i + taps], w) for i in range(size)]).reshape(size, 2 * d) + weights[at + ".bias"]
    return u[:, :d] / (1 + np.exp(-u[:, d:]))


def embed(ids, weights, at):
    return weights[at + ".word"][ids].astype(np.float64) + weights[at + ".position"][: len(ids)]


def translate(source, target, weights):
    e = z = embed(source, weights, "encoder")
    for l in range(2):
        z = (gated(z, weights, f"encoder.{l}", weights[f"encoder.{l}.weight"].shape[2] // 2) + z) / np.sqrt(2)
    g = h = embed(target, weights, "decoder")
    m = len(source)
    for l in range(2):
        h = (gated(h, weights, f"decoder.{l}", weights[f"decoder.{l}.weight"].shape[2] - 1) + h) / np.sqrt(2)
        d = linear(h, weights, f"decoder.{l}.attention") + g
        if m:
            a = np.exp(d @ z.T)
            h = h + (a / a.sum(1, keepdims=True)) @ (z + e) * (m * np.sqrt(1 / m))
    y = np.exp(linear(h, weights, "output"))
    return y / y.sum(1, keepdims=True)


def oracle(inputs, weights):
    return {"y": np.stack([translate(s[:m], t, weights) for s, m, t in zip(inputs["source"], inputs["length"], inputs["target"])])}


rng = np.random.default_rng(614)
cases = []
for lengths, m, n, d, k, words in [([9, 4], 9, 7, 8, 3, 13), ([131], 140, 133, 6, 5, 9), ([1], 1, 1, 4, 3, 3), ([0, 3], 5, 4, 4, 4, 5)]:
    weights = linear_weights(rng, "output", words, d)
    for side, rows in (("encoder", m), ("decoder", n)):
        weights |= {f"{side}.word": uniform(rng, words, d) / 2, f"{side}.position": uniform(rng, rows + 3, d) / 2}
        for l in range(2):
            at = f"{side}.{l}"
            weights |= {at + ".weight": uniform(rng, 2 * d, d, k) * np.float32((d * k) ** -0.5), at + ".bias": uniform(rng, 2 * d)}
    for l in range(2):
        weights |= linear_weights(rng, f"decoder.{l}.attention", d, d)
    b = len(lengths)
    source, target = (rng.integers(0, words, (b, size)).astype(np.int32) for size in (m, n))
    cases.append((dict(source=source, length=np.array(lengths, np.int32), target=target), weights))
check("conv-hybrid/convs2s", oracle, cases)
