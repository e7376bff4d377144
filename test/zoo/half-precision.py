# RUN: %python %s heedc
"""Gholami et al. 2022 (mixed precision): an encoder layer that stores f16 and sums in f32. The oracle rounds to f16 where values are stored; a value
near the middle of two f16 may fall otherwise, so a result may be off by about one rounding of f16, 2^-11. Sums in f16 would be off by far more: the
last case has rows of 512 numbers of one sign."""
import numpy as np
from zoo import check, uniform

HEADS = 4


def half(x):
    return x.astype(np.float16).astype(np.float64)


def linear(x, w, at):
    return half(x @ w[at + ".weight"].T + w[at + ".bias"])


def norm(x, w, at):
    return half((x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w[at + ".weight"] + w[at + ".bias"])


def oracle(inputs, weights):
    w = {name: a.astype(np.float64) for name, a in weights.items()}
    out = []
    for x in inputs["x"].astype(np.float64):
        q, k, v = (linear(x, w, "attention." + n) for n in ("query", "key", "value"))
        e = x.shape[1] // HEADS
        o = np.zeros(x.shape)
        for c in (slice(h * e, h * e + e) for h in range(HEADS)):
            s = np.exp(q[:, c] @ k[:, c].T / np.sqrt(e))
            o[:, c] = s / s.sum(1, keepdims=True) @ v[:, c]
        h = norm(half(x + linear(half(o), w, "attention.output")), w, "norm1")
        f = linear(np.maximum(linear(h, w, "ffn.up"), 0), w, "ffn.down")
        out.append(norm(half(h + f), w, "norm2"))
    return {"y": np.stack(out)}


rng = np.random.default_rng(144)
cases = []
for b, n, d in [(2, 7, 16), (1, 140, 8), (1, 1, 8), (1, 3, 512)]:
    def draw(*shape, low=-1):
        return rng.uniform(low, 1, shape).astype(np.float16)

    weights = {}
    shapes = {f"attention.{name}": (d, d) for name in ("query", "key", "value", "output")} | {"ffn.up": (64, d), "ffn.down": (d, 64)}
    for name, (o, i) in shapes.items():
        low = 0 if d == 512 and name == "attention.value" else -1
        weights[name + ".weight"], weights[name + ".bias"] = (draw(o, i, low=low) * np.float16(i**-0.5)).astype(np.float16), draw(o)
    for name in ("norm1", "norm2"):
        weights[name + ".weight"], weights[name + ".bias"] = draw(d) + np.float16(1.5), draw(d)
    cases.append((dict(x=draw(b, n, d, low=0 if d == 512 else -1)), weights))
check("quantization/half-precision", oracle, cases, tolerance=2e-3)
