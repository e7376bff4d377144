# A penalty that the score gives to some keys alone: of -inf it excludes them, whatever their values hold.
# RUN: %python %s %heed_bin/heedc %t
"""The penalty is a scalar or a number of the row, known to the call alone; against NumPy in float64, at sizes of one and several tiles."""
import sys

import numpy as np

import programs
from programs import compare, compile
from runs import finish

programs.start(*sys.argv[1:3])
rng = np.random.default_rng(4)
MODEL = """model m(q: f32[N, E], k: f32[M, E], v: f32[M, F], b: f32[N], z: f32) {{
  s[i,j] = sum(e) q[i,e] * k[j,e]
  x[i,j] = if abs(i - j) > 3 then s[i,j] + {penalty} else s[i,j]
  p[i,j] = softmax(j{mask}) x[i,j]
  return o[i,f] = sum(j) p[i,j] * v[j,f]
}}
"""

for name, penalty, mask in (("row", "b[i]", ""), ("row-mask", "b[i]", " where j <= i + 30"), ("one", "z", ""), ("one-mask", "z", " where j <= i + 30")):
    program = compile(name, MODEL.format(penalty=penalty, mask=mask))
    for N, M in (1, 9), (2, 70), (40, 200):
        for most in -np.inf, -1.0:
            q, k = (rng.uniform(-1, 1, (n, 8)).astype(np.float32) for n in (N, M))
            v, b, z = rng.uniform(-1, 1, (M, 5)).astype(np.float32), np.full(N, -0.5, np.float32), np.float32(most)
            b[::2] = most
            v[M - 1] = np.nan
            i, j = np.arange(N)[:, None], np.arange(M)[None, :]
            s = q.astype(np.float64) @ k.T + np.where(abs(i - j) > 3, b[:, None] if "row" in name else z, 0)
            live = (s > -np.inf) & ((j <= i + 30) | (mask == ""))
            w = np.where(live, np.exp(s - s.max(1, keepdims=True)), 0)
            terms = np.where(live[:, :, None], w[:, :, None] * v.astype(np.float64)[None], 0)
            compare(program, {"q": q, "k": k, "v": v, "b": b}, {"o": terms.sum(1) / w.sum(1, keepdims=True)}, "--z", str(most))
finish()
