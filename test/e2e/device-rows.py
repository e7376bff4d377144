# RUN: env HEED_TARGET=opencl %python %s %heed_bin/heedc %t
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
# REQUIRES: opencl
"""Softmax, norms, extrema and sums of rows and of columns on a device, where threads share a row, against float64 NumPy: rows as long as the threads are
many, one more and one less, several turns of them, and none; columns that fill no block; NaN, infinities and rows without a live element; integers; one row of
a product."""
import sys

import numpy as np

import programs
import safetensors_file
from runs import finish

programs.start(*sys.argv[1:])
random = np.random.default_rng(3)


def draw(*shape):
    return random.uniform(-2, 2, shape).astype(np.float32)


def f64(*arrays):
    return [np.asarray(a, np.float64) for a in arrays]


ROWS = """model m(x: f32[N, {E}], g: f32[{E}]) {{
  mean[n] = sum(e) x[n,e] / {count}
  c[n,e] = x[n,e] - mean[n]
  variance[n] = sum(e) c[n,e] * c[n,e] / {count}
  y[n,e] = c[n,e] / sqrt(variance[n] + 1e-5) * g[e]
  p[n,e] = softmax(e) x[n,e]
  top[n] = max(e) x[n,e]
  low[n] = min(e) x[n,e]
  return y, p, top, low
}}"""


def rows(x, g):
    x, g = f64(x, g)
    c = x - x.mean(1, keepdims=True)
    e = np.exp(x - x.max(1, keepdims=True))
    return {"y": c / np.sqrt((c * c).mean(1, keepdims=True) + 1e-5) * g, "p": e / e.sum(1, keepdims=True), "top": x.max(1), "low": x.min(1)}


says = ["--target=opencl", "--explain=all"]
unknown = programs.compile("rows", ROWS.format(E="E", count="E"), *says, says="has the GPU rows schedule")
for E in 1, 31, 127, 128, 129, 511, 512, 513, 4099:
    x, g = draw(3, E), draw(E)
    programs.compare(unknown, {"x": x, "g": g}, rows(x, g))
for E in 32, 33, 100, 1024, 1025, 2050:
    x, g = draw(5, E), draw(E)
    programs.compare(programs.compile(f"rows-{E}", ROWS.format(E=E, count=E), *says, says="has the GPU rows schedule"), {"x": x, "g": g}, rows(x, g))

# The extrema of nothing, NaN wherever it stands, and infinities.
extrema = programs.compile("extrema", "model m(x: f32[A, B, C]) {\n  t[a,b] = max(c) x[a,b,c]\n  s[a,b] = sum(c) x[a,b,c]\n  return t, s\n}", "--target=opencl")
programs.compare(extrema, {"x": draw(2, 3, 0)}, {"t": np.full((2, 3), -np.inf), "s": np.zeros((2, 3))})
x = draw(5, 2, 700)
x[0, 0, 699] = x[1, 1, 0] = np.nan
x[2, 0, 128], x[3, :, 5] = np.inf, -np.inf
with np.errstate(invalid="ignore"):
    programs.compare(extrema, {"x": x}, {"t": x.max(2), "s": f64(x)[0].sum(2)})

# Places behind the end of a row are no part of it, whatever its elements' sign.
masked = programs.compile("masked", "model m(x: f32[B, N, M], len: i32[B]) {\n  return p[b,i,j] = softmax(j where j < len[b]) x[b,i,j]\n}", "--target=opencl")
x, length = draw(4, 2, 300) - 100, np.array([0, 1, 299, 300], np.int32)
x[2, :, 299] = np.nan
expected = np.zeros(x.shape)
for b, last in enumerate(length):
    e = np.exp(f64(x)[0][b, :, :last] - f64(x)[0][b, :, :last].max(1, keepdims=True, initial=-np.inf))
    expected[b, :, :last] = e / e.sum(1, keepdims=True)
programs.compare(masked, {"x": x, "len": length}, {"p": expected})

columns = programs.compile("columns", "model m(x: f32[B, N, D], i: i32[N, D]) {\n  s[b,d] = sum(n) x[b,n,d]\n  t[b,d] = max(n) x[b,n,d]\n  u[d] = sum(n) i[n,d]\n  return s, t, u\n}",
                           *says, says="has the GPU rows schedule")
for N, D in (1, 1), (0, 3), (15, 31), (16, 32), (65, 33), (1000, 100):
    x, i = draw(3, N, D), random.integers(-100, 100, (N, D)).astype(np.int32)
    programs.compare(columns, {"x": x, "i": i}, {"s": f64(x)[0].sum(1), "t": x.max(1, initial=-np.inf), "u": i.sum(0)})

# What reads a sum at other rows than its own is not of its block: a result with more dims, or with its dims in another order. More of them than a block has threads.
SUM = "  s[j,n] = sigmoid(sum(f) x[j,n,f])\n"
wide = programs.compile("wide", "model m(x: f32[J, N, F], y: f32[H, J, N]) {\n" + SUM + "  return wide[h,j,n] = y[h,j,n] * s[j,n]\n}", *says, says="m_row has the plain GPU schedule")
turned = programs.compile("turned", "model m(x: f32[J, N, F]) {\n" + SUM + "  return turned[n,j,f] = x[j,n,f] * s[j,n]\n}", *says, says="m_row has the plain GPU schedule")
for J, N, F, H in (2, 2, 1, 4), (5, 3, 40, 2), (3, 70, 33, 1), (1, 5000, 2, 2):
    x, y = draw(J, N, F), draw(H, J, N)
    s = 1 / (1 + np.exp(-f64(x)[0].sum(2)))
    programs.compare(wide, {"x": x, "y": y}, {"wide": y * s})
    programs.compare(turned, {"x": x}, {"turned": (x * s[..., None]).swapaxes(0, 1)})

# A pipeline for one row: weights by terms and by columns.
PRODUCTS = """model m(x: f32[N, 300]) {
  param w: f32[1030, 300] @ "w"
  param v: f32[1030, 259] @ "v"
  u[n,o] = max(sum(i) x[n,i] * w[o,i], 0)
  return y[n,p] = sum(o) u[n,o] * v[o,p]
}"""
w, v = draw(1030, 300), draw(1030, 259)
products = programs.compile("products", PRODUCTS, *says, says="m_contraction_0_one has the GPU rows schedule")
safetensors_file.write(products + ".safetensors", {"w": w, "v": v})
for N in 1, 2, 7:
    x = draw(N, 300)
    of, ow, ov = f64(x, w, v)
    programs.compare(products, {"x": x}, {"y": np.maximum(of @ ow.T, 0) @ ov}, "--weights", products + ".safetensors")
finish()
