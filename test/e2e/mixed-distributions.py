# RUN: %python %s %heed_bin/heedc %t
"""A weight that mixes two softmaxes is two attentions, with its factors before them (attn-raise-attention). Where neither has a live key the sum
is one of absent elements and 0, whatever the factors; where one has, the other's factor meets its 0, and NaN shows. Two sums with a factor each, of
distributions over the same products, are one sum: there each factor meets its sum, also one of nothing."""
import sys

import numpy as np

import programs
from runs import expect, finish

programs.start(*sys.argv[1:])
N, M, E, F = 9, 4, 3, 2
HEADER = "model m(q, r: f32[N, E], k: f32[M, E], v: f32[M, F], g: f32[N], c: f32[N], s: f32) {\n"
SCORES = "  a[i,j] = sum(e) q[i,e] * k[j,e]\n  b[i,j] = sum(e) r[i,e] * k[j,e]\n"
#: how the second is weighed -> by g and s
FACTORS = {"g[i]": lambda g, s: g, "s": lambda g, s: np.full(N, s), "(g[i] * s)": lambda g, s: g * s, "0.5": lambda g, s: np.full(N, 0.5)}
#: how a distribution is normalised, and of which scores of a row with which sink
KINDS = {"softmax(j where {mask}) {scores}": "softmax", "softmax(j where {mask}; sink = c[i]) {scores}": "sink", "sparsemax(j where {mask}) {scores}": "sparsemax"}


def weights(kind, scores, live, sink):
    out = np.zeros_like(scores)
    for i in range(N):
        keys = np.flatnonzero(live[i] & (scores[i] != -np.inf))
        if not len(keys):
            continue
        row = scores[i, keys]
        if kind == "sparsemax":
            ordered = np.sort(row)[::-1]
            bound = (np.cumsum(ordered) - 1) / np.arange(1, len(row) + 1)
            out[i, keys] = np.maximum(row - bound[np.sum(ordered > bound) - 1], 0)
        else:
            row = np.exp(row - row.max()) / (np.exp(row - row.max()).sum() + (np.exp(sink[i] - row.max()) if kind == "sink" else 0))
            out[i, keys] = row
    return out


rng = np.random.default_rng(0)
given = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in dict(q=(N, E), r=(N, E), k=(M, E), v=(M, F), g=N, c=N).items()}
i, j = np.arange(N)[:, None], np.arange(M)[None]
first, second = i - j >= 3, i + j <= 6  # rows 0 to 2 have no key of the first, 7 and 8 none of the second
second[1] = False  # and row 1 none at all
for number, (factor, weigh) in enumerate(FACTORS.items()):
    for how, kind in KINDS.items():
        source = (HEADER + SCORES + "  p[i,j] = " + how.format(mask="i - j >= 3", scores="a[i,j]") + "\n  w[i,j] = "
                  + how.format(mask="i + j <= 6 and i != 1", scores="b[i,j]")
                  + f"\n  return o[i,f] = sum(j) (p[i,j] - {factor} * w[i,j]) * v[j,f]\n}}\n")
        program = programs.compile(f"m{number}-{kind}", source)
        for bad in (None, 0, 1, 4, 8, "s"):
            inputs = {**given, "g": given["g"].copy(), "s": 0.75}
            if bad == "s":
                inputs["s"] = np.nan
            elif bad is not None:
                inputs["g"][bad] = np.nan
            x = {name: np.asarray(value, np.float64) for name, value in inputs.items()}
            p, w = weights(kind, x["q"] @ x["k"].T, first, x["c"]), weights(kind, x["r"] @ x["k"].T, second, x["c"])
            by = weigh(x["g"], x["s"])
            want = np.zeros((N, F))
            for row in range(N):
                live = first[row] | second[row]
                want[row] = ((p[row] - by[row] * w[row])[live, None] * x["v"][live]).sum(0)
            programs.compare(program, inputs, dict(o=want), tolerance=2e-5)
    said = programs.run(programs.heedc, f"{programs.folder}/m{number}-softmax.heed", "-o", f"{programs.folder}/m{number}", "--explain=all")
    expect("mixes 2 distributions" in said.stderr + said.stdout, "two attentions: " + said.stderr)

# Masks that are data: rows 1 and 2 have no live key of the first, 2 and 3 none of the second.
HEADER = "model m(q, k: f32[N, E], v: f32[N, F], a, b: f32[N, N], g, h: f32[N], u: f32[N, F]) {\n  s[i,j] = sum(e) q[i,e] * k[j,e]\n"
SUMS = "  x[i,f] = sum(j) p[i,j] * v[j,f]\n  y[i,f] = sum(j) w[i,j] * v[j,f]\n"
given["k"], given["v"] = rng.standard_normal((N, E)).astype(np.float32), rng.standard_normal((N, F)).astype(np.float32)
given["a"], given["b"] = (np.where(np.isin(np.arange(N), rows)[:, None], -np.inf, rng.standard_normal((N, N))).astype(np.float32) for rows in ([1, 2], [2, 3]))
given["h"], given["u"] = rng.standard_normal(N).astype(np.float32), rng.standard_normal((N, F)).astype(np.float32)
given = {name: given[name] for name in ("q", "k", "v", "a", "b", "g", "h", "u")}
for name, whole, of in (("two", "g[i] * x[i,f] - h[i] * y[i,f]", lambda g, h, x, y, u: g * x - h * y),
                        ("rest", "g[i] * x[i,f] + u[i,f] + y[i,f]", lambda g, h, x, y, u: g * x + u + y)):
    program = programs.compile(name, HEADER + "  p[i,j] = softmax(j) (s[i,j] + a[i,j])\n  w[i,j] = softmax(j) (s[i,j] + b[i,j])\n" + SUMS
                               + f"  return o[i,f] = {whole}\n}}\n")
    # Where both are of nothing the factors are not added: 3e38 + 3e38 is no number of f32.
    for changed in [{factor: (row, bad)} for bad in (np.nan, 0.0) for row in (1, 2, 3, 4) for factor in ("g", "h")] + [{"g": (2, 3e38), "h": (2, -3e38)}]:
        inputs = {**given, **{factor: given[factor].copy() for factor in changed}}
        for factor, (row, bad) in changed.items():
            inputs[factor][row] = bad
        r = {name: np.asarray(value, np.float64) for name, value in inputs.items()}
        p, w = (weights("softmax", r["q"] @ r["k"].T + r[mask], np.ones((N, N), bool), None) for mask in "ab")
        want = of(r["g"][:, None], r["h"][:, None], p @ r["v"], w @ r["v"], r["u"])
        programs.compare(program, inputs, dict(o=want), tolerance=2e-5)
    said = programs.run(programs.heedc, f"{programs.folder}/{name}.heed", "-o", f"{programs.folder}/{name}", "--explain=all")
    expect("one product with the values for all" in said.stderr + said.stdout, "one sum: " + said.stderr)
finish()
