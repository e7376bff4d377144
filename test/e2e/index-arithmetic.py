# RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin/heedc %t
"""Arithmetic of indices is that of i64, wherever it stands: products that leave 32 bits, and numbers of the user and of
the data near the ends of their types, in positions, conditions and masks (whose bounds trim loops)."""
import pathlib
import sys

import numpy as np

from runs import expect, finish, run

heedc, folder = sys.argv[1], pathlib.Path(sys.argv[2])
random = np.random.default_rng(3)
N, M, E = 37, 301, 8
q, k, v = (random.standard_normal((n, E)).astype("f4") for n in (N, M, M))
ATTENTION = """model m(q: f32[N, E], k: f32[M, E], v: f32[M, E]{0}) {{
  s[i,j] = sum(e) q[i,e] * k[j,e]
  p[i,j] = softmax(j where {1}) s[i,j]
  return o[i,e] = sum(j) p[i,j] * v[j,e]
}}
"""


def program(name, text):
    (folder / f"{name}.heed").write_text(text)
    done = run(heedc, folder / f"{name}.heed", "-o", folder / name)
    expect(done.returncode == 0, f"{name}: {done.stderr}")

    def call(expected, **inputs):
        arguments = []
        for key, value in inputs.items():
            if isinstance(value, np.ndarray):
                np.save(folder / f"{key}.npy", value)
                value = folder / f"{key}.npy"
            arguments.append(f"--{key}={value}")
        done = run(folder / name, *arguments, "--output", folder / "o.npy")
        expect(done.returncode == 0, f"{name}: {done.stderr}")
        error = np.abs(np.load(folder / "o.npy").astype("f8") - expected).max() if done.returncode == 0 else 0
        expect(error < 1e-4, f"{name}: differs by {error} for {[x for x in inputs.values() if isinstance(x, int)]}")
    return call


def attention(mask):
    scores = np.where(mask, q.astype("f8") @ k.T, -np.inf)
    top = scores.max(1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = weights.sum(1, keepdims=True)
    return weights / np.where(total == 0, 1, total) @ v


# Grouped heads: h*G is 2^34.
heads = 1 << 17
program("groups", "model m(a: f32[H], b: f32[G]) { return y[h] = a[h] * b[h*G/H] }")(
    np.arange(heads), a=np.ones(heads, "f4"), b=np.arange(heads, dtype="f4"))
program("steps", "model m(a: f32[N]) { return y[i:N] = a[i*65536*65536 // 65536 // 65536] }")(
    np.arange(5), a=np.arange(5, dtype="f4"))
program("compared", "model m(a: f32[N]) { return y[i] = if i*65536*65536 > 0 then a[i] else 7 }")(
    [7, 1, 2], a=np.arange(3, dtype="f4"))
added = program("added", "model m(a: f32[N]; w: i32) { return y[i] = if i + w < N + 5 and i + w >= 0 then a[i] else 7 }")
for w in (2, 2**31 - 1, 2**31 - 2, -(2**31), -1):
    added([i if 0 <= i + w < 9 else 7 for i in range(4)], a=np.arange(4, dtype="f4"), w=w)

i, j = np.arange(N)[:, None], np.arange(M)[None]
near = program("near", ATTENTION.format("; w: i32", "abs(i - j) <= w"))
between = program("between", ATTENTION.format("; w: i32", "j <= i + w and j >= i - w"))
for w in (5, -3, 2**30, 2**31 - 1, 2**31 - 20, -(2**31)):
    near(attention(abs(i - j) <= w), q=q, k=k, v=v, w=w)
    between(attention((j <= i + w) & (j >= i - w)), q=q, k=k, v=v, w=w)
for bits in 32, 64:
    rows = program(f"rows{bits}", ATTENTION.format(f", a: i{bits}[N], b: i{bits}[N]", "j <= i + a[i] and j >= i - b[i]"))
    ends = [3, 2**31 - 1, -(2**31)] + [2**40, -(2**62)] * (bits == 64)
    for a in ends:
        for b in ends:
            mask = np.array([[y <= x + a and y >= x - b for y in range(M)] for x in range(N)])
            rows(attention(mask), q=q, k=k, v=v, a=np.full(N, a, f"i{bits // 8}"), b=np.full(N, b, f"i{bits // 8}"))

# A row of known width that is read from its end, masked where it fills no vector: the lanes left out are before its first element.
for kind, name in ("f4", "f32"), ("i4", "i32"):
    x, y = np.arange(1, 3, dtype=kind), np.arange(5, 7, dtype="f4")
    program(f"descends-{name}", f"model m(x: {name}[2], w: f32[1, 2], z: f32[1]) {{ return o[i] = (sum(d) z[d] * w[d,i]) * x[1 - i] }}")(
        y * x[::-1], x=x, w=y[None], z=np.ones(1, "f4"))
finish()
