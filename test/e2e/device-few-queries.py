# RUN: env HEED_TARGET=opencl %python %s %heed_bin/heedc %t
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
# REQUIRES: opencl
"""Attention of few queries and many keys on a device, where the keys are cut in parts that another kernel merges, against float64 NumPy: numbers of queries
and of keys around those where it begins, the last part short or empty; heads that share keys; masks that leave whole parts without a key; NaN and infinity
in values that no query sees; one group of value dims, and a last group that is no whole one; weights without a maximum or without a sum."""
import sys

import numpy as np

import programs
from live_attention import oracle
from runs import finish

programs.start(*sys.argv[1:])
random = np.random.default_rng(8)


def draw(*shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def model(F, mask, weight="softmax", E=64, more=""):
    p = f"softmax(j{mask}) s[b,h,i,j]" if weight == "softmax" else "max(s[b,h,i,j], 0)" if weight == "relu" else "sigmoid(s[b,h,i,j])"
    over = "" if weight == "softmax" else mask
    return f"""model m(q: f32[B, H, N, {E}], k: f32[B, G, M, {E}], v: f32[B, G, M, {F}]{more}) {{
  s[b,h,i,j] = sum(e) q[b,h,i,e] * k[b, h*G/H, j, e] / sqrt({E})
  p[b,h,i,j] = {p}
  return o[b,h,i,f] = sum(j{over}) p[b,h,i,j] * v[b, h*G/H, j, f]
}}"""


def causal(N, M):
    return np.arange(M) <= np.arange(N)[:, None] + (M - N)


#: N, M: where parts begin, and ends of parts, of blocks and of tiles.
SIZES = ((1, 255), (1, 256), (1, 257), (3, 1000), (4, 448), (5, 640), (8, 1029), (9, 300), (1, 5000))
for F in 64, 8, 17:
    program = programs.compile(f"causal-{F}", model(F, " where j <= i + (M - N)"), "--target=opencl", "--explain=all", says="in parts of the keys")
    for N, M in SIZES if F == 64 else SIZES[3:5]:
        q, k, v = draw(2, 4, N, 64), draw(2, 2, M, 64), draw(2, 2, M, F)
        programs.compare(program, {"q": q, "k": k, "v": v}, {"o": oracle(q, k, v, np.broadcast_to(causal(N, M), (2, N, M)))})

# Rows that see no key, parts that no row sees, and what stands in keys behind the last.
lengths = programs.compile("lengths", model(32, " where j < len[b]", E=32, more=", len: i32[B]"), "--target=opencl")
for N, M in (2, 1000), (8, 321):
    q, k, v = draw(4, 2, N, 32), draw(4, 2, M, 32), draw(4, 2, M, 32)
    length = np.array([0, 1, M // 2, M], np.int32)
    live = np.broadcast_to((np.arange(M) < length[:, None])[:, None], (4, N, M))
    for b, last in enumerate(length):
        k[b, :, last:], v[b, 0, last:], v[b, 1, last:] = np.nan, np.nan, np.inf
    programs.compare(lengths, {"q": q, "k": k, "v": v, "len": length}, {"o": oracle(q, k, v, live)})
# One query that has no dim of its own, which sees all keys, those before a length, or those of a kind.
for name, where, more in ("all", "", ""), ("lengths", " where j < len[b]", ", len: i32[B]"), ("kinds", " where kind[j] == of[b]", ", kind: i32[M], of: i32[B]"):
    program = programs.compile(f"one-{name}", f"""model m(q: f32[B, H, 32], k: f32[B, G, M, 32], v: f32[B, G, M, 40]{more}) {{
  s[b,h,j] = sum(e) q[b,h,e] * k[b, h*G/H, j, e] / sqrt(32)
  p[b,h,j] = softmax(j{where}) s[b,h,j]
  return o[b,h,f] = sum(j) p[b,h,j] * v[b, h*G/H, j, f]
}}""", "--target=opencl", "--explain=all", says="in parts of the keys")
    for M in 1, 37, 1000:
        q, k, v = draw(3, 4, 1, 32), draw(3, 2, M, 32), draw(3, 2, M, 40)
        length, kind, of = np.array([0, 1, M], np.int32), random.integers(0, 3, M).astype(np.int32), np.array([0, 1, 7], np.int32)
        live = {"all": np.ones((3, M), bool), "lengths": np.arange(M) < length[:, None], "kinds": kind == of[:, None]}[name]
        inputs = {"q": q[:, :, 0], "k": k, "v": v, **{"lengths": {"len": length}, "kinds": {"kind": kind, "of": of}}.get(name, {})}
        programs.compare(program, inputs, {"o": oracle(q, k, v, live[:, None])[:, :, 0]})
window = programs.compile("window", model(64, " where j > i + (M - N) - 70 and j <= i + (M - N)"), "--target=opencl")
q, k, v = draw(1, 1, 2, 64), draw(1, 1, 3000, 64), draw(1, 1, 3000, 64)
programs.compare(window, {"q": q, "k": k, "v": v}, {"o": oracle(q, k, v, (causal(2, 3000) & ~np.tri(2, 3000, 2998 - 70, bool))[None])})

# One key far above the others, which every other part is rescaled by.
q, k, v = draw(1, 1, 1, 64), draw(1, 1, 2000, 64), draw(1, 1, 2000, 64)
k[0, 0, 1234] = 40 * q[0, 0, 0]
programs.compare(program := programs.compile("full", model(64, ""), "--target=opencl"), {"q": q, "k": k, "v": v}, {"o": oracle(q, k, v, np.full((1, 1, 2000), True))})
v[0, 0, 7, 3] = np.nan
programs.compare(program, {"q": q, "k": k, "v": v}, {"o": oracle(q, k, v, np.full((1, 1, 2000), True))})

for weight in "relu", "sigmoid":
    program = programs.compile(weight, model(64, " where j <= i + (M - N)", weight), "--target=opencl", "--explain=all", says="in parts of the keys")
    q, k, v = draw(1, 2, 3, 64), draw(1, 2, 900, 64), draw(1, 2, 900, 64)
    programs.compare(program, {"q": q, "k": k, "v": v}, {"o": oracle(q, k, v, causal(3, 900)[None], weight)})
finish()
