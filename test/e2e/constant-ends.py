# RUN: %python %s %heed_bin/heedc %t
"""Constants that are NaN or infinite, or make such numbers, in products and sums: LLVM takes what it knows to be NaN for anything where an op
promises that there is none. Sums of zeros divide nothing but NaN."""
import sys

import numpy as np

import programs
from runs import finish

programs.start(*sys.argv[1:])
NAN, INF = np.nan, np.inf
#: source -> of x [B, N], all of it positive.
CASES = {
    "y[b] = sum(n) x[b,n] * (inf - inf)": lambda x: x * NAN,
    "y[b] = sum(n) x[b,n] * (0.0 / 0.0)": lambda x: x * NAN,
    "y[b] = sum(n) (0.0 / (0.0 * x[b,n])) * x[b,n]": lambda x: x * NAN,
    "z[b:B] = 0.0\n  w[b] = z[b] / z[b]\n  y[b] = sum(n) w[b] * x[b,n]": lambda x: x * NAN,
    "y[b] = sum(n) x[b,n] * inf": lambda x: x * INF,
    "y[b] = sum(n) x[b,n] * inf * 0.0": lambda x: x * NAN,
    "y[b] = sum(n) (x[b,n] + inf)": lambda x: x * INF,
    "z[b:B,n:N] = 0.0\n  l[b] = sum(n where x[b,n] > 0) z[b,n]\n  y[b] = sum(n where x[b,n] > 0) z[b,n] / l[b] * x[b,n]": lambda x: x * NAN,
    "y[b] = sum(n) x[b,n] * (if x[b,n] > 0.5 then 1 else inf)": lambda x: x * np.where(x > 0.5, 1, INF),
    "y[b] = sum(n) (x[b,n] + (if n < 5 then 0 else -inf))": lambda x: x - INF,
    "y[b] = sum(n) exp(x[b,n] + (if n < 5 then 0 else -inf))": lambda x: np.exp(x) * (np.arange(x.shape[1]) < 5),
    "c = if 2 > 1 then inf else 0.0\n  d = c - c\n  y[b] = sum(n) x[b,n] * d": lambda x: x * NAN,
    "y[b] = sum(n) sqrt(x[b,n] - inf)": lambda x: x * NAN,
    "z[b:B] = 0.0\n  y[b] = sum(n) x[b,n] * log(z[b])": lambda x: x * -INF,
    "z[b:B] = -1.0\n  y[b] = sum(n) x[b,n] * sqrt(z[b])": lambda x: x * NAN,
    "z[b:B] = 0.0\n  y[b] = sum(n) x[b,n] * (1.0 / z[b])": lambda x: x * INF,
    "y[b] = sum(n) x[b,n] * 1e38 * 1e10": lambda x: x * INF,
    "z[b:B] = 3e38\n  y[b] = sum(n) x[b,n] * (z[b] * z[b])": lambda x: x * INF,
}
x = np.random.default_rng(0).uniform(0.1, 1, (3, 40)).astype(np.float32)
for number, (body, terms) in enumerate(CASES.items()):
    source = f"model m(x: f32[B, N]) {{\n  {body}\n  return y\n}}\n"
    want = dict(y=terms(x.astype(np.float64)).sum(1))
    for how, options in dict(any=[], known=["--set=B=3", "--set=N=40"], v2=["--target=x86-64-v2"], reference=["--backend=reference"]).items():
        programs.compare(programs.compile(f"m{number}-{how}", source, *options), dict(x=x), want)
# Weights of an attention whose scores are sums over nothing: relu attention, written out.
quotient = """model m(q: f32[N, E], k: f32[M, E], v: f32[M, F], allow: bool[N, M]) {
  r[i,j] = relu(sum(e) q[i,e] * k[j,e])
  l[i] = sum(j where allow[i,j]) r[i,j]
  return o[i,f] = sum(j where allow[i,j]) r[i,j] / l[i] * v[j,f]
}
"""
allow = np.ones((5, 3), bool)
allow[2] = False
given = dict(q=np.zeros((5, 0), np.float32), k=np.zeros((3, 0), np.float32), v=np.ones((3, 2), np.float32), allow=allow)
want = np.full((5, 2), NAN)
want[2] = 0  # a sum over no key
for how, options in dict(any=[], known=["--set=E=0", "--set=N=5", "--set=M=3", "--set=F=2"], reference=["--backend=reference"]).items():
    programs.compare(programs.compile(f"quotient-{how}", quotient, *options), given, dict(o=want))
finish()
