# RUN: env HEED_TARGET=opencl %python %s %heed_bin/heedc %t
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
# REQUIRES: opencl
"""Attention whose model leaves the size of the heads open, on a device: one program for heads of 64 and of 128, which have pipelines of their own, for keys and
values of different sizes, and for all others, against float64 NumPy."""
import sys

import numpy as np

import programs
from runs import finish

programs.start(*sys.argv[1:])
random = np.random.default_rng(5)


def draw(*shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def oracle(q, k, v, first=0):
    q, k, v = (np.asarray(a, np.float64) for a in (q, k, v))
    k, v = (a.repeat(q.shape[1] // a.shape[1], 1) for a in (k, v))
    s = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])
    N, M = s.shape[2:]
    at = np.arange(N)[:, None] + (M - N)
    s = np.where((np.arange(M) <= at) & (np.arange(M) >= first), s, -np.inf)
    p = np.exp(s - s.max(3, keepdims=True))
    # What no query sees is no part of it, also if it is NaN.
    return p / p.sum(3, keepdims=True) @ np.where(np.arange(M)[:, None] >= first, v, 0)


MODEL = """model m(q: f32[B, H, N, E], k: f32[B, G, M, E], v: f32[B, G, M, F]) {
  s[b,h,i,j] = sum(e) q[b,h,i,e] * k[b, h*G/H, j, e] / sqrt(E)
  p[b,h,i,j] = softmax(j where j <= i + (M - N) and j >= 3) s[b,h,i,j]
  return o[b,h,i,f] = sum(j) p[b,h,i,j] * v[b, h*G/H, j, f]
}"""
program = programs.compile("attention", MODEL, "--target=opencl", "--explain=all", says="m_attention_128_split has the streaming attention schedule")
#: B, H, G, N, M, E, F
SIZES = ((1, 2, 1, 70, 70, 64, 64), (2, 4, 2, 33, 100, 128, 128), (1, 2, 2, 3, 500, 64, 64), (1, 2, 1, 1, 300, 128, 128), (1, 1, 1, 40, 50, 64, 128), (1, 1, 1, 40, 50, 128, 64),
         (1, 2, 1, 20, 30, 63, 63), (1, 1, 1, 5, 20, 16, 1))
for B, H, G, N, M, E, F in SIZES:
    # Each query sees a key.
    N = min(N, M - 3)
    q, k, v = draw(B, H, N, E), draw(B, G, M, E), draw(B, G, M, F)
    k[0, 0, 1], v[0, 0, 2] = np.nan, np.inf
    clean = np.where(np.isfinite(k), k, 0)
    programs.compare(program, {"q": q, "k": k, "v": v}, {"o": oracle(q, clean, v, 3)})
finish()
