# RUN: env HEED_TARGET=opencl %python %s %heed_bin/heedc %t
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
# REQUIRES: opencl
"""Attention on a device under masks of which processors have tables: documents, spans, flags, unions of ranges. There a tile of queries goes over one range of keys. Against
float64 NumPy: rows without a key, tiles without any, ends within a tile; NaN and infinity in what no query sees."""
import sys

import numpy as np

import programs
from live_attention import oracle
from runs import finish

programs.start(*sys.argv[1:])
random = np.random.default_rng(11)


def numbers(below, count):
    return random.integers(0, below, count).astype(np.int32)


def draw(*shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


#: Condition, its inputs, their values for N queries and keys, and which pairs live.
MASKS = {
    "documents": ("j <= i and d[i] == d[j]", "d: i32[N]", lambda n: {"d": np.sort(numbers(4, n))}, lambda i, j, d: (j <= i) & (d[i] == d[j])),
    "kinds": ("d[i] == d[j] and d[j] != 0", "d: i32[N]", lambda n: {"d": numbers(3, n)}, lambda i, j, d: (d[i] == d[j]) & (d[j] != 0)),
    "spans": ("j >= a[i] and j < z[i]", "a: i32[N], z: i32[N]", lambda n: {"a": numbers(n, n), "z": numbers(n + 5, n)}, lambda i, j, a, z: (j >= a[i]) & (j < z[i])),
    "union": ("abs(i - j) <= 7 or j < 3", "", lambda n: {}, lambda i, j: (abs(i - j) <= 7) | (j < 3)),
    "flags": ("g[j] or j == i - 40", "g: bool[N]", lambda n: {"g": random.random(n) < 0.02}, lambda i, j, g: g[j] | (j == i - 40)),
}
for name, (where, more, values, live) in MASKS.items():
    program = programs.compile(name, f"""model m(q: f32[B, H, N, 32], k: f32[B, H, N, 32], v: f32[B, H, N, 24]{", " if more else ""}{more}) {{
  s[b,h,i,j] = sum(e) q[b,h,i,e] * k[b,h,j,e] / sqrt(32)
  p[b,h,i,j] = softmax(j where {where}) s[b,h,i,j]
  return o[b,h,i,f] = sum(j) p[b,h,i,j] * v[b,h,j,f]
}}""", "--target=opencl", "--explain=all", says="1 of 1 attention fused")
    for n in 1, 47, 64, 150:
        q, k, v, of = draw(1, 2, n, 32), draw(1, 2, n, 32), draw(1, 2, n, 24), values(n)
        seen = np.broadcast_to(live(np.arange(n)[:, None], np.arange(n)[None, :], **of), (n, n))
        for j in np.flatnonzero(~seen.any(0)):
            k[:, :, j], v[:, 0, j], v[:, 1, j] = np.nan, np.nan, np.inf
        programs.compare(program, {"q": q, "k": k, "v": v, **of}, {"o": oracle(q, k, v, seen[None])})
finish()
