# RUN: %python %s heedc
"""Gulati et al. 2020, equation 1 and figures 1 to 4. Scores pair by pair: (q_i + u) . k_j + (q_i + v) . (W R_{i-j}) with R a sinusoid of the offset;
the convolution by np.convolve on padded channels."""
import numpy as np
from zoo import check, layer_norm, linear, linear_weights, norm_weights, softmax, uniform


def swish(x):
    return x / (1 + np.exp(-x))


def sinusoid(offset, d):
    angle = offset / 10000.0 ** (np.arange(0, d, 2) / d)
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(d)


def ffn(x, w, at):
    return linear(swish(linear(layer_norm(x, w, at + ".norm"), w, at + ".up")), w, at + ".down")


def attention(x, w, at, count=4):
    n, d = x.shape
    e = d // count
    m = layer_norm(x, w, at + ".norm")
    q, k, v = (linear(m, w, f"{at}.{name}") for name in ("query", "key", "value"))
    r = {offset: w[at + ".position.weight"].astype(np.float64) @ sinusoid(offset, d) for offset in range(1 - n, n)}
    out = np.zeros((n, d))
    for h in range(count):
        part = slice(h * e, h * e + e)
        u, b = (w[f"{at}.{name}"][h].astype(np.float64) for name in "uv")
        s = np.array([[(q[i, part] + u) @ k[j, part] + (q[i, part] + b) @ r[i - j][part] for j in range(n)] for i in range(n)])
        out[:, part] = softmax(s / np.sqrt(e)) @ v[:, part]
    return linear(out, w, at + ".output")


def convolution(x, w, at):
    n, d = x.shape
    t = linear(layer_norm(x, w, at + ".norm"), w, at + ".pointwise1")
    t = t[:, :d] / (1 + np.exp(-t[:, d:]))
    taps = w[at + ".depthwise.weight"].astype(np.float64)
    size = taps.shape[1]
    before = (size - 1) // 2
    z = np.stack([np.convolve(np.pad(t[:, c], (before, size - 1 - before)), taps[c, ::-1], "valid") for c in range(d)], 1) + w[at + ".depthwise.bias"]
    mean, variance, gain, shift = (w[f"{at}.batch.{name}"].astype(np.float64) for name in ("running_mean", "running_var", "weight", "bias"))
    return linear(swish((z - mean) / np.sqrt(variance + 1e-5) * gain + shift), w, at + ".pointwise2")


def oracle(inputs, weights):
    out = []
    for x in inputs["x"].astype(np.float64):
        for l in range(2):
            x = x + ffn(x, weights, f"layer.{l}.ffn1") / 2
            x = x + attention(x, weights, f"layer.{l}.self")
            x = x + convolution(x, weights, f"layer.{l}.conv")
            x = layer_norm(x + ffn(x, weights, f"layer.{l}.ffn2") / 2, weights, f"layer.{l}.norm")
        out.append(x)
    return {"y": np.stack(out)}


rng = np.random.default_rng(131)
cases = []
for b, n, d, taps in [(2, 11, 16, 7), (1, 133, 8, 31), (1, 1, 8, 3), (1, 5, 8, 32), (1, 9, 8, 1)]:
    weights = {}
    for at in ("layer.0.", "layer.1."):
        for f in ("ffn1", "ffn2"):
            weights |= linear_weights(rng, f"{at}{f}.up", 4 * d, d) | linear_weights(rng, f"{at}{f}.down", d, 4 * d)
            weights |= norm_weights(rng, f"{at}{f}.norm", d)
        for name in ("query", "key", "value", "output"):
            weights |= linear_weights(rng, f"{at}self.{name}", d, d)
        weights[at + "self.position.weight"] = uniform(rng, d, d) * np.float32(d**-0.5)
        weights[at + "self.u"], weights[at + "self.v"] = uniform(rng, 4, d // 4), uniform(rng, 4, d // 4)
        for norm in ("self.norm", "conv.norm", "norm", "conv.batch"):
            weights |= norm_weights(rng, at + norm, d)
        weights[at + "conv.batch.running_mean"], weights[at + "conv.batch.running_var"] = uniform(rng, d), uniform(rng, d) + np.float32(1.5)
        weights |= linear_weights(rng, at + "conv.pointwise1", 2 * d, d) | linear_weights(rng, at + "conv.pointwise2", d, d)
        weights[at + "conv.depthwise.weight"] = uniform(rng, d, taps) * np.float32(taps**-0.5)
        weights[at + "conv.depthwise.bias"] = uniform(rng, d)
    cases.append((dict(x=uniform(rng, b, n, d)), weights))
check("speech/conformer", oracle, cases)
