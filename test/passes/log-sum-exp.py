# RUN: %python %s %heed_bin/heedc %t
"""Log-sum-exps beside attentions and alone against float64 NumPy: masks that leave rows empty, scores of -inf, sinks, large scores, 16-bit inputs, lengths beyond two tiles and of 0."""
import sys

import numpy as np
from programs import compare, compile, start
from runs import finish

start(*sys.argv[1:3])
rng = np.random.default_rng(7)
MODEL = """model m(q: {t}[H, N, E], k: {t}[H, M, E], v: {t}[H, M, F], bias: f32[M], sinks: f32[H], count: i32) {{
  s[h,i,j] = (sum(e) f32(q[h,i,e]) * f32(k[h,j,e])) + bias[j]
  p[h,i,j] = softmax(j{where}{sink}) s[h,i,j]
  {top}return o[h,i,f] = sum(j) p[h,i,j] * f32(v[h,j,f]), l[h,i] = {lse}
}}
"""
ALONE = """model m(q: f32[H, N, E], k: f32[H, M, E], v: f32[H, M, F], bias: f32[M], sinks: f32[H], count: i32) {{
  s[h,i,j] = (sum(e) q[h,i,e] * k[h,j,e]) + bias[j]
  {top}return l[h,i] = {lse}
}}
"""
WHERE = {"": lambda i, j, count: i >= 0, "j <= i": lambda i, j, count: j <= i, "j < i": lambda i, j, count: j < i,
         "j < count and i >= 2": lambda i, j, count: (j < count) & (i >= 2)}


def oracle(q, k, v, bias, sinks, count, where, sink, maximum):
    q, k, v, bias, sinks = (x.astype(np.float64) for x in (q, k, v, bias, sinks))
    o, l = np.zeros(q.shape[:2] + v.shape[2:]), np.zeros(q.shape[:2])
    for h in range(q.shape[0]):
        for i in range(q.shape[1]):
            seen = np.array([j for j in range(k.shape[1]) if WHERE[where](i, j, count)], int)
            s = k[h, seen] @ q[h, i] + bias[seen]
            top = max([*s, -np.inf])
            live = s > -np.inf
            x = np.exp(s[live] - top)
            total = x.sum() + (np.exp(sinks[h] - top) if sink and live.any() else 0)
            if live.any():
                o[h, i] = x @ v[h, seen[live]] / total
            if maximum and len(seen) and not live.any():
                l[h, i] = np.nan  # -inf less itself
            elif live.any():
                l[h, i] = top + np.log(total)
            else:
                l[h, i] = sinks[h] if sink else -np.inf
    return {"o": o, "l": l}


def draw(n, m, e, f, large=1.0, masked=()):
    q, k, v = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((2, n, e), (2, m, e), (2, m, f)))
    bias = rng.uniform(-1, 1, m).astype(np.float32)
    bias[list(masked)] = -np.inf
    return dict(q=q * np.float32(large), k=k, v=v, bias=bias, sinks=np.float32([0.5, -3]), count=4)


DRAWS = [draw(5, 7, 4, 3), draw(1, 1, 1, 1), draw(150, 140, 8, 16), draw(70, 300, 8, 4, large=40), draw(6, 8, 4, 3, masked=range(8)),
         draw(9, 9, 4, 3, masked=(0, 1, 5)), draw(4, 5, 3, 0), draw(3, 0, 2, 2), draw(0, 4, 2, 2), draw(3, 4, 0, 2)]
for number, (where, sink, maximum, half, alone) in enumerate([
        ("", 0, 0, 0, 0), ("", 0, 1, 0, 0), ("j <= i", 0, 0, 0, 0), ("j < i", 0, 1, 0, 0), ("j < count and i >= 2", 1, 0, 0, 0),
        ("j <= i", 0, 1, 1, 0), ("", 0, 1, 0, 1), ("j < i", 0, 1, 0, 1), ("j < i", 1, 0, 0, 1)]):
    guard = f" where {where}" * bool(where)
    if maximum:
        top = f"m[h,i] = max(j{guard}) s[h,i,j]\n  "
        lse = f"m[h,i] + log(sum(j{guard}) exp(s[h,i,j] - m[h,i]))"
    else:
        top, lse = "", f"log((sum(j{guard}) exp(s[h,i,j]))" + " + exp(sinks[h])" * sink + ")"
    source = (ALONE if alone else MODEL).format(t="f16" if half else "f32", where=guard, sink="; sink = sinks[h]" * sink, top=top, lse=lse)
    program = compile(f"m{number}", source, "--explain", says="log-sum-exp alone is read" if alone else "the log-sum-exp of its rows is a result, too")
    for inputs in DRAWS:
        if half:
            inputs = inputs | {n: inputs[n].astype(np.float16) for n in "qkv"}
        expected = oracle(*inputs.values(), where, sink, maximum)
        compare(program, inputs, {"l": expected["l"]} if alone else expected)
finish()
