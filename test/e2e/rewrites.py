# Models that rewrites once changed: a factor that occurs twice, an index that nothing uses, rows without a key, scores of integers.
# RUN: %python %s %heed_bin/heedc %t
"""Small models against NumPy in float64, at sizes of one and several tiles; with NaN where it must show, and where not."""
import sys

import numpy as np

import programs
from programs import compare, compile
from runs import finish

heedc, folder = sys.argv[1:3]
programs.start(heedc, folder)
rng = np.random.default_rng(13)
HEAD = "model m(q: f32[N, E], k: f32[M, E], v: f32[M, F]) {\n  s[i,j] = sum(e) q[i,e] * k[j,e]\n"


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True, initial=-np.inf)) if s.size else s
    return e / e.sum(-1, keepdims=True)


def lower(s, strict=False):
    return np.tril(np.ones(s.shape, bool), -1 if strict else 0)


def rows(weights, v):
    """Written out: 0 / 0 where no weight is left."""
    with np.errstate(invalid="ignore"):
        return (weights @ v) / weights.sum(-1, keepdims=True)


relu = lambda x: np.maximum(x, 0)
MODELS = {
    "relu-squared": ("  return o[i,f] = sum(j) relu(s[i,j])^2 * v[j,f]\n}\n", lambda s, v: relu(s) ** 2 @ v),
    "softmax-squared": ("  p[i,j] = softmax(j) s[i,j]\n  return o[i,f] = sum(j) p[i,j]^2 * v[j,f]\n}\n", lambda s, v: softmax(s) ** 2 @ v),
    "squared": ("  return o[i,f] = sum(j) s[i,j]^2 * v[j,f]\n}\n", lambda s, v: s ** 2 @ v),
    "squared-causal": ("  return o[i,f] = sum(j where j <= i) s[i,j]^2 * v[j,f]\n}\n", lambda s, v: (s ** 2 * lower(s)) @ v),
    "cubed": ("  return o[i,f] = sum(j) s[i,j] * s[i,j] * v[j,f] * s[i,j]\n}\n", lambda s, v: s ** 3 @ v),
    "divided-twice": ("  x[i,j] = exp(s[i,j])\n  l[i] = sum(j) x[i,j]\n  return o[i,f] = (sum(j) x[i,j] * v[j,f]) / l[i] / l[i]\n}\n",
                      lambda s, v: (np.exp(s) @ v) / np.exp(s).sum(-1, keepdims=True) ** 2),
}
SIZES = [(1, 1, 1, 1), (3, 5, 4, 2), (17, 33, 8, 5), (70, 150, 16, 24)]

for name, (body, expected) in MODELS.items():
    program = compile(name, HEAD + body)
    for N, M, E, F in SIZES:
        q, k, v = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((N, E), (M, E), (M, F)))
        s = q.astype(np.float64) @ k.T
        compare(program, {"q": q, "k": k, "v": v}, {"o": expected(s, v.astype(np.float64))})

# An index that no operand uses counts.
program = compile("unused", HEAD.replace("sum(e)", "sum(e, g:3)") + "  p[i,j] = softmax(j) s[i,j]\n  return o[i,f] = sum(j) p[i,j] * v[j,f]\n}\n")
for N, M, E, F in SIZES:
    q, k, v = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((N, E), (M, E), (M, F)))
    compare(program, {"q": q, "k": k, "v": v}, {"o": softmax(3 * (q.astype(np.float64) @ k.T)) @ v.astype(np.float64)})

# Products of integers sum exactly, as integers, before they are scores.
program = compile("integers", "model m(q: i8[N, E], k: i8[M, E], v: f32[M, F], scale: f32[N]) {\n  d[i,j] = sum(e) q[i,e] * k[j,e]\n"
                  "  p[i,j] = softmax(j) (f32(d[i,j]) * scale[i])\n  return o[i,f] = sum(j) p[i,j] * v[j,f]\n}\n")
for N, M, E, F in SIZES:
    q, k = (rng.integers(-127, 128, shape).astype(np.int8) for shape in ((N, E), (M, E)))
    v, scale = rng.uniform(-1, 1, (M, F)).astype(np.float32), rng.uniform(0, 1e-4, N).astype(np.float32)
    s = (q.astype(np.int64) @ k.T.astype(np.int64)) * scale.astype(np.float64)[:, None]
    compare(program, {"q": q, "k": k, "v": v, "scale": scale}, {"o": softmax(s) @ v.astype(np.float64)})

# An RMS norm behind a projection whose weight is an input.
program = compile("norm", "model m(x: f32[N, I], w: f32[O, I], g: f32[O]; eps = 1e-6) {\n  y[n,o] = sum(i) x[n,i] * w[o,i]\n"
                  "  return z[n,o] = y[n,o] / sqrt((sum(o) y[n,o]^2) / O + eps) * g[o]\n}\n")
for N, width, out in ((1, 1, 1), (3, 5, 7), (40, 64, 33)):
    x, w, g = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((N, width), (out, width), (out,)))
    y = x.astype(np.float64) @ w.T
    compare(program, {"x": x, "w": w, "g": g}, {"z": y / np.sqrt((y ** 2).sum(-1, keepdims=True) / out + 1e-6) * g})

# A weight that is 0 is no absence: a NaN that it is multiplied with shows.
program = compile("weight-of-0", HEAD + "  w[i,j] = if j <= i then exp(s[i,j]) else 0.0\n  p[i,j] = w[i,j] / (sum(j) w[i,j])\n"
                  "  return o[i,f] = sum(j) p[i,j] * v[j,f]\n}\n")
q, k, v = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((9, 4), (20, 4), (20, 6)))
w = np.exp(q.astype(np.float64) @ k.T) * lower(np.empty((9, 20)))
compare(program, {"q": q, "k": k, "v": v}, {"o": rows(w, v)})
v[19, 2] = np.nan
compare(program, {"q": q, "k": k, "v": v}, {"o": np.where(np.arange(6) == 2, np.nan, rows(w, np.nan_to_num(v)))})
finish()
