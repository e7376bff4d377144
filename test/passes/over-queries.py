# RUN: %python %s %heed_bin/heedc %t
"""Softmaxes over queries whose weights are summed over keys, against float64 NumPy: masks that leave a key no query or a query no key, scores
of -inf and beside them infinite values, sinks, large scores, sums that divide, 16-bit inputs, lengths beyond two tiles and of 0 and 1."""
import sys

import numpy as np
from programs import compare, compile, start
from runs import finish

start(*sys.argv[1:3])
rng = np.random.default_rng(15)
MODEL = """model m(q: {t}[H, N, E], k: {t}[H, M, E], v: {t}[H, M, F], bias: f32[N, M], sinks: f32[H]) {{
  s[h,i,j] = (sum(e) f32(q[h,i,e]) * f32(k[h,j,e])) + bias[i,j]
  p[h,i,j] = softmax(i{where}{sink}) s[h,i,j]
  {result}
}}
"""
WHERE = {"": lambda i, j: i >= 0, "i <= j": lambda i, j: i <= j, "i < j and j != 3": lambda i, j: (i < j) & (j != 3), "abs(i - j) <= 2": lambda i, j: abs(i - j) <= 2}
SUM = "return o[h,i,f] = sum(j) p[h,i,j] * f32(v[h,j,f])"
SLOTS = "w[h,i,j] = (p[h,i,j] + 0.001) / (sum(l) (p[h,i,l] + 0.001))\n  return o[h,i,f] = sum(j) w[h,i,j] * f32(v[h,j,f])"
MEAN = "return o[h,i,f] = (sum(j) (p[h,i,j] + 0.001) * f32(v[h,j,f])) / (sum(j) (p[h,i,j] + 0.001))"


def oracle(q, k, v, bias, sinks, where, sink, divided):
    q, k, v, bias, sinks = (x.astype(np.float64) for x in (q, k, v, bias, sinks))
    (heads, n, _), (m, f) = q.shape, v.shape[1:]
    p, absent = np.zeros((heads, n, m)), np.ones((heads, n, m), bool)
    for h in range(heads):
        for j in range(m):
            seen = np.array([i for i in range(n) if WHERE[where](i, j)], int)
            with np.errstate(invalid="ignore"):
                s = q[h, seen] @ k[h, j] + bias[seen, j]
            live = seen[~(s == -np.inf)]
            s = s[~(s == -np.inf)]
            if len(s):
                top = s.max()
                x = np.exp(s - top) if top < np.inf else np.full(len(s), np.nan)
                p[h, live, j] = x / (x.sum() + (np.exp(sinks[h] - top) if sink else 0))
                absent[h, live, j] = False
    o = np.zeros((heads, n, f))
    for h in range(heads):
        for i in range(n):
            if divided == MEAN and not m:
                o[h, i] = np.nan
            elif divided and m:
                w = p[h, i] + 0.001
                o[h, i] = w @ v[h] / w.sum()
            else:
                use = ~absent[h, i]
                o[h, i] = p[h, i, use] @ v[h, use]
    return {"o": o}


def draw(n, m, e, f, large=1.0, keys=(), queries=(), pairs=0, odd=None):
    q, k, v = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((2, n, e), (2, m, e), (2, m, f)))
    bias = rng.uniform(-1, 1, (n, m)).astype(np.float32)
    bias[:, list(keys)] = -np.inf
    bias[list(queries)] = -np.inf
    bias[rng.random((n, m)) < pairs] = -np.inf
    if odd is not None:
        v[:, list(keys)] = odd  # what no query has a weight for shows nowhere
    return dict(q=q * np.float32(large), k=k, v=v, bias=bias, sinks=np.float32([0.5, -3]))


DRAWS = [draw(5, 7, 4, 3), draw(1, 1, 1, 1), draw(1, 9, 3, 2), draw(8, 1, 3, 2), draw(150, 140, 8, 16), draw(7, 300, 8, 4), draw(70, 200, 16, 20, large=20),
         draw(6, 8, 4, 3, keys=range(8)), draw(9, 9, 4, 3, keys=(0, 4)), draw(9, 9, 4, 3, queries=(0, 5)), draw(40, 90, 4, 3, pairs=0.6), draw(4, 5, 3, 0), draw(3, 0, 2, 2),
         draw(0, 4, 2, 2), draw(3, 4, 0, 2)]
ODD = [draw(9, 9, 4, 3, keys=(2, 8), odd=np.nan), draw(60, 130, 4, 3, keys=range(50, 100), odd=np.inf)]
for number, (where, sink, half, result) in enumerate([
        ("", 0, 0, SUM), ("i <= j", 0, 0, SUM), ("i < j and j != 3", 0, 0, SUM), ("abs(i - j) <= 2", 0, 0, SUM), ("", 1, 0, SUM), ("i <= j", 1, 1, SUM),
        ("", 0, 0, SLOTS), ("i < j and j != 3", 0, 0, SLOTS), ("", 0, 1, MEAN), ("i <= j", 1, 0, MEAN)]):
    source = MODEL.format(t="f16" if half else "f32", where=f" where {where}" * bool(where), sink="; sink = sinks[h]" * sink, result=result)
    program = compile(f"m{number}", source, "--explain", says="its softmax runs over queries")
    for inputs in DRAWS + (ODD if result == SUM else []):
        if half:
            inputs = inputs | {n: inputs[n].astype(np.float16) for n in "qkv"}
        compare(program, inputs, oracle(*inputs.values(), where, sink, result if result != SUM else ""))

# A live NaN, or a score of +inf, makes the weights of its key NaN, and of no other key; nor where the score is -inf.
program = compile("odd", MODEL.format(t="f32", where="", sink="", result=SUM), says="")
for bad in (np.nan, np.inf):
    inputs = draw(40, 70, 4, 3)
    inputs["bias"][3, 5] = bad
    inputs["bias"][20:, 5] = -np.inf
    expected = oracle(**inputs, where="", sink=0, divided="")["o"]
    inputs["bias"][3, 5] = 0
    others = oracle(**inputs, where="", sink=0, divided="")["o"]
    assert np.isnan(expected[:, :20]).all() and np.isfinite(expected[:, 20:]).all()
    inputs["bias"][3, 5] = bad
    compare(program, inputs, {"o": np.where(np.arange(40)[:, None] < 20, np.nan, others)})
finish()
