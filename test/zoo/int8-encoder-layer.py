# RUN: %python %s heedc
"""Xiao and Zhu 2023, section 5.9: the layer of Vaswani et al. 2017 with int8 in its linear maps alone. What is quantised inside depends on f32
rounding near ties; a digit that falls otherwise changes a result by about a step of one weight, so that cases are drawn until all digits are
clear of ties, by 1e-4 of a step and more. Against the layer without quantisation the difference must be that of int8, not zero and not large."""
import numpy as np
from zoo import check, heads, layer_norm, merge, norm_weights, softmax, uniform

HEADS = 4
clear = []  # distances of all quantised numbers from the next tie


def linear_int8(x, weights, at):
    w, scale, bias = (weights[f"{at}.{n}"].astype(np.float64) for n in ("weight", "scale", "bias"))
    s = np.abs(x).max(-1, keepdims=True) / 127
    r = x / s
    clear.append(np.abs(r - np.floor(r) - 0.5).min())
    return np.rint(r) @ w.T * s * scale + bias


def linear_real(x, weights, at):
    w, scale, bias = (weights[f"{at}.{n}"].astype(np.float64) for n in ("weight", "scale", "bias"))
    return x @ (w * scale[:, None]).T + bias


def layer(x, weights, linear):
    q, k, v = (heads(linear(x, weights, "attention." + n), HEADS) for n in ("query", "key", "value"))
    o = merge(softmax(np.einsum("bhie,bhje->bhij", q, k) / np.sqrt(q.shape[-1])) @ v)
    h = layer_norm(x + linear(o, weights, "attention.output"), weights, "norm1")
    return layer_norm(h + linear(np.maximum(linear(h, weights, "ffn.up"), 0), weights, "ffn.down"), weights, "norm2")


def oracle(inputs, weights):
    x = inputs["x"].astype(np.float64)
    y, real = layer(x, weights, linear_int8), layer(x, weights, linear_real)
    assert 1e-5 < np.abs(y - real).max() / np.abs(real).max() < 0.1
    return {"y": y}


def quantised(rng, at, out, into):
    w = rng.uniform(-1, 1, (out, into)) * into**-0.5
    scale = np.abs(w).max(1) / 127
    return {f"{at}.weight": np.rint(w / scale[:, None]).astype(np.int8), f"{at}.scale": scale.astype(np.float32), f"{at}.bias": uniform(rng, out)}


def draw(rng, b, n, d):
    weights = quantised(rng, "ffn.up", 64, d) | quantised(rng, "ffn.down", d, 64) | norm_weights(rng, "norm1", d) | norm_weights(rng, "norm2", d)
    for name in ("query", "key", "value", "output"):
        weights |= quantised(rng, "attention." + name, d, d)
    return dict(x=uniform(rng, b, n, d)), weights


rng = np.random.default_rng(143)
cases = []
for b, n, d, margin in [(2, 5, 16, 1e-3), (1, 1, 8, 1e-3), (1, 33, 16, 2e-4), (1, 131, 8, 1e-4)]:
    for _ in range(300):
        case = draw(rng, b, n, d)
        clear.clear()
        oracle(*case)
        if min(clear) > margin:
            break
    else:
        raise AssertionError("no case without a near tie")
    cases.append(case)
check("quantization/int8-encoder-layer", oracle, cases)
