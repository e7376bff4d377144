# RUN: %python %s %heed_bin/heedc %t
"""Sums of products with 0: those of NaN and of infinite numbers are NaN, where Halide and LLVM would take them for 0. A maximum of maxima whose
terms are shifted, and a question about zeros alone, are compiled."""
import sys

import numpy as np

import programs
from runs import finish

programs.start(*sys.argv[1:])
SIZES = dict(B=3, N=40, E=16)
#: source -> of x [B, N], q [B, E] and g [E, N].
CASES = {
    "y[b] = sum(n) x[b,n] * 0.0": lambda x, q, g: (x * 0).sum(1),
    "z[b:B,n:N] = 0.0\n  y[b] = sum(n) x[b,n] * z[b,n]": lambda x, q, g: (x * 0).sum(1),
    "y[b] = sum(n) x[b,n] * 0.0 * x[b,n]": lambda x, q, g: (x * 0 * x).sum(1),
    "y[b] = sum(n) x[b,n] * (x[b,n] * (0.0 * x[b,n]) * x[b,n])": lambda x, q, g: (x * 0 * x * x * x).sum(1),
    "y[b] = sum(n) x[b,n] * x[b,n] * -0.0": lambda x, q, g: (x * x * -0.0).sum(1),
    "y[b] = sum(n) (x[b,n] * 0.0 + 1) * x[b,n] * 0.0": lambda x, q, g: ((x * 0 + 1) * x * 0).sum(1),
    "y[b,e] = sum(n) x[b,n] * (g[e,n] * 0.0)": lambda x, q, g: np.einsum("bn,en->be", x, g * 0),
    "y[b,n] = sum(e) q[b,e] * (0.0 * g[e,n])": lambda x, q, g: np.einsum("be,en->bn", q, 0 * g),
    "s[e:E] = 0.0\n  y[b,n:N] = sum(e) q[b,e] * s[e]": lambda x, q, g: (q * 0).sum(1)[:, None] + np.zeros_like(x),
    "y[b] = sum(n) (x[b,n] - x[b,n]) * -0.0": lambda x, q, g: ((x - x) * -0.0).sum(1),
    "z[b,n] = -abs(x[b,n]) - 0.25\n  y = max(b, n) z[b,n]": lambda x, q, g: (-np.abs(x) - 0.25).max(),
}
rng = np.random.default_rng(0)
given = dict(x=rng.uniform(-1, 1, (3, 40)), q=rng.uniform(-1, 1, (3, 16)), g=rng.uniform(-1, 1, (16, 40)))
given["x"][1, 5], given["x"][2, 0], given["q"][1, 3], given["q"][2, 2] = np.nan, np.inf, -np.inf, np.nan
given["g"][3, 5] = np.inf
given = {key: x.astype(np.float32) for key, x in given.items()}
for number, (body, oracle) in enumerate(CASES.items()):
    source = f"model m(x: f32[B, N], q: f32[B, E], g: f32[E, N]) {{\n  {body}\n  return y\n}}\n"
    with np.errstate(invalid="ignore"):
        want = dict(y=oracle(**{key: x.astype(np.float64) for key, x in given.items()}))
    for how, options in dict(any=[], known=[f"--set={dim}={size}" for dim, size in SIZES.items()], reference=["--backend=reference"]).items():
        programs.compare(programs.compile(f"m{number}-{how}", source, *options), given, want)
# A state of zeros that a first step reads, alone: what is read is a func of its own.
step = """model m(q, k: f32[1, E], v: f32[1, F], g: f32[F]) {
  scan t in 0..1, S: f32[E, F] = 0 {
    y[t,f] = sum(e) q[t,e] * S[e,f]
    S[e,f] = g[f] * S[e,f] + k[t,e] * v[t,f]
  }
  return y
}"""
queries = np.float32([[1, 2, np.nan, 3]])
for how, options in dict(passes=[], reference=["--backend=reference"]).items():
    programs.compare(programs.compile(f"step-{how}", step, *options), dict(q=queries, k=queries, v=np.ones((1, 5), np.float32), g=np.ones(5, np.float32)), dict(y=np.full((1, 5), np.nan)))
finish()
