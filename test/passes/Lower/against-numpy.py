# Kernels against NumPy in f64: sizes around a vector and a tile, 1, and 0; masked rows, infinities and NaN.
# RUN: %python %s %S/Inputs %t
import sys
from math import erf

import numpy as np
from kernels import Model

inputs, folder = sys.argv[1:]
rng = np.random.default_rng(7)
failures = 0


def load(name, checks=True):
    with open(f"{inputs}/{name}.mlir") as f:
        return Model(f.read(), f"{folder}/{name}{int(checks)}", checks=checks)


def draw(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def check(what, found, expected, tolerance=1e-5):
    global failures
    scale = max(np.abs(expected[np.isfinite(expected)]).max(initial=0), 1e-30)
    same = (np.isnan(found) & np.isnan(expected)) | (np.abs(found - expected) <= tolerance * scale)
    if found.shape != expected.shape or not same.all():
        failures += 1
        print(f"{what}: {(~same).sum()} of {same.size} elements differ")


def attention(q, k, v):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    group = np.arange(q.shape[1]) * k.shape[1] // q.shape[1]
    n, m = q.shape[2], k.shape[2]
    live = np.arange(m)[None] <= np.arange(n)[:, None] + m - n
    with np.errstate(all="ignore"):
        s = np.where(live, np.einsum("bhie,bhje->bhij", q, k[:, group]) / np.sqrt(q.shape[3]), -np.inf)
        top = np.where(np.isnan(s), -np.inf, s).max(-1, keepdims=True, initial=-np.inf)
        w = np.exp(s - np.where(np.isneginf(top), 0, top))
        total = w.sum(-1, keepdims=True)
        p = np.where(live & (total != 0), w / total, 0)
        return np.einsum("bhij,bhijf->bhif", p, np.where(live[..., None], v[:, group][:, :, None], 0))


model = load("attention")
for B, H, G, N, M, E, F in [(2, 4, 2, 7, 9, 8, 5), (1, 1, 1, 1, 1, 1, 1), (1, 2, 1, 50, 33, 64, 64), (1, 2, 2, 33, 50, 16, 17),
                            (1, 3, 3, 65, 130, 31, 49), (0, 1, 1, 5, 4, 4, 3)]:
    q, k, v = draw(B, H, N, E), draw(B, G, M, E), draw(B, G, M, F)
    check(f"attention {B, H, G, N, M, E, F}", model(q, k, v), attention(q, k, v))
q, k, v = draw(1, 1, 20, 8), draw(1, 1, 20, 8), draw(1, 1, 20, 8)
q[0, 0, 3, 0] = np.nan  # one row
k[0, 0, 11, 2] = np.inf  # a score of an infinity: NaN or 0 in every row that sees the key
v[0, 0, 15, 1] = np.nan  # one column of the rows that see the key
check("attention with NaN and infinity", model(q, k, v), attention(q, k, v))
check("attention with large scores", model(q[:, :, 4:11] * 1e4, k[:, :, 4:11], v[:, :, 4:11]),
      attention(q[:, :, 4:11] * 1e4, k[:, :, 4:11], v[:, :, 4:11]), 1e-3)

# A sum of no terms. Halide's checks look at the place before the first, which no loop reaches.
q, k, v = draw(1, 1, 5, 4), draw(1, 1, 0, 4), draw(1, 1, 0, 3)
check("attention without keys", load("attention", checks=False)(q, k, v), attention(q, k, v))

model = load("materialised")
for N, M, E, F in [(7, 9, 8, 5), (1, 1, 1, 1), (33, 50, 16, 17), (50, 33, 9, 20)]:
    q, k, v = draw(N, E), draw(M, E), draw(M, F)
    check(f"materialised {N, M, E, F}", model(q, k, v), attention(q[None, None] * np.sqrt(E), k[None, None], v[None, None])[0, 0])

model = load("ffn")
for B, N in [(1, 1), (2, 5), (1, 8), (3, 17), (1, 130), (1, 0)]:
    x, w, b = draw(B, N, 40), draw(80, 40), draw(80)
    t = x.astype(np.float64) @ w.T.astype(np.float64) + b
    check(f"ffn {B, N}", model(x, w, b), t * 0.5 * (1 + np.vectorize(erf, otypes=[float])(t * np.sqrt(0.5))))

model = load("norm")
for B, N in [(1, 1), (2, 5), (3, 17), (1, 0)]:
    x, y, g, b = draw(B, N, 40), draw(B, N, 40), draw(40), draw(40)
    c = (x + y).astype(np.float64)
    c = c - c.mean(-1, keepdims=True)
    check(f"norm {B, N}", model(x, y, g, b), c / np.sqrt((c**2).mean(-1, keepdims=True) + 1e-5) * g + b)

sys.exit(failures != 0)
