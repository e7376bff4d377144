# RUN: %python %s %heed_bin/heedc %t
"""Reductions over what comes before, or behind, whose keys fulfil more than that: a mask, the same segment; and argmax over them. Against NumPy, with a cost that
grows with the length."""
import sys

import numpy as np

import programs
from runs import finish

programs.start(*sys.argv[1:])
rng = np.random.default_rng(1622)
uniform = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)
LENGTHS = [0, 1, 2, 63, 64, 65, 200]


def reduced(n, reduce, neutral, keys, strict=False, behind=False):
    """reduce(the keys before i, or behind it, with keys(i, j)) for each i."""
    found = []
    for i in range(n):
        part = [j for j in (range(i + strict, n) if behind else range(i + 1 - strict)) if keys(i, j)]
        found.append(reduce(part) if part else neutral)
    return np.array(found)


def check(name, source, inputs, oracle, says="a recurrence", lengths=LENGTHS):
    program = programs.compile(name, source, "--explain=all", says=says)
    slow = programs.compile(name + "-reference", source, "--backend=reference")
    for n in lengths:
        given = inputs(n)
        for target in [program, slow] if n < 70 else [program]:
            programs.compare(target, given, dict(y=oracle(n, **{name: x.astype(np.float64) if x.dtype == np.float32 else x for name, x in given.items()})))


masked = lambda n: dict(x=uniform(n, 9), ok=rng.uniform(size=n) < 0.6)
check("masked", "model m(x: f32[N, D], ok: bool[N]) { return y[i:N,d] = sum(j where j <= i and ok[j]) x[j,d] }", masked,
      lambda n, x, ok: np.cumsum(np.where(ok[:, None], x, 0), 0))
check("masked-max", "model m(x: f32[N, D], ok: bool[N]) { return y[i:N,d] = max(j where ok[j] and j > i) x[j,d] }", masked,
      lambda n, x, ok: reduced(n, lambda part: x[part].max(0), np.full(9, -np.inf), lambda i, j: ok[j], True, True).reshape(n, 9))
check("masked-mean", "model m(x: f32[N, D], ok: bool[N]) { return y[i:N,d] = mean(j where j <= i and ok[j]) x[j,d] }", masked,
      lambda n, x, ok: reduced(n, lambda part: x[part].mean(0), np.zeros(9), lambda i, j: ok[j]).reshape(n, 9))
# A term that may be read where its key is there alone.
check("guarded", "model m(x: f32[N, D], at: i32[N]) { return y[i:N,d] = sum(j where j <= i and at[j] >= 0 and at[j] < N) x[at[j],d] }",
      lambda n: dict(x=uniform(n, 9), at=rng.integers(-3, n + 2, n).astype(np.int32)),
      lambda n, x, at: np.cumsum(np.stack([x[a] if 0 <= a < n else np.zeros(9) for a in at]) if n else x, 0))
check("stable", """model m(x: f32[N, D], ok: bool[N]) {
  top[i:N,d] = max(j where j <= i and ok[j]) x[j,d]
  return y[i,d] = sum(j where j <= i and ok[j]) exp(x[j,d] - top[i,d])
}""", masked, lambda n, x, ok: np.stack([reduced(n, lambda part: np.exp(x[part, d] - x[part, d].max()).sum(), 0, lambda i, j: ok[j]) for d in range(9)], 1)
      if n else x)

EACH = lambda n, x, keys, *how: np.stack([reduced(n, lambda part: part[int(np.argmax(x[part, d]))], -1, keys, *how) for d in range(5)], 1).astype(np.int32) \
    if n else np.zeros((0, 5), np.int32)
# Conditions guard the reads of those behind them, and a strict bound those of the last key.
check("nested", "model m(x: f32[N, D], at: i32[N]) { return y[i:N,d] = sum(j where j <= i and 0 <= at[j] and at[j] < N) (if x[at[j],0] > 0 then x[at[j],d] else 0) }",
      lambda n: dict(x=uniform(n, 9), at=rng.choice([0, 1, n // 2, n - 1, -2**28, 2**28], n).astype(np.int32)),
      lambda n, x, at: np.cumsum(np.stack([x[a] if 0 <= a < n and x[a, 0] > 0 else np.zeros(9) for a in at]) if n else x, 0))
check("next", "model m(x: f32[N, D]) { return y[i:N,d] = sum(j:N where j < i) x[j + 1,d] }", lambda n: dict(x=uniform(n, 9)),
      lambda n, x: np.cumsum(x, 0) - x[:1])
check("last", "model m(x: f32[N, D]) { return y[i:N,d] = max(j:N where j > i) x[j - 1,d] }", lambda n: dict(x=uniform(n, 9)),
      lambda n, x: reduced(n, lambda part: x[[j - 1 for j in part]].max(0), np.full(9, -np.inf), lambda i, j: True, True, True).reshape(n, 9))
check("argmax-next", "model m(x: f32[N, D]) { return y[i:N,d] = argmax(j:N where j < i) x[j + 1,d] }", lambda n: dict(x=uniform(n, 5)),
      lambda n, x: EACH(n, np.roll(x, -1, 0), lambda i, j: True, True))

# Ties: few values. NaN wins over numbers.
tied = lambda n: dict(x=np.where(rng.uniform(size=(n, 5)) < 0.01, np.nan, rng.integers(-2, 2, (n, 5))).astype(np.float32))
check("argmax", "model m(x: f32[N, D]) { return y[i:N,d] = argmax(j where j <= i) x[j,d] }", tied, lambda n, x: EACH(n, x, lambda i, j: True))
check("argmax-strict", "model m(x: f32[N, D]) { return y[i:N,d] = argmax(j where j < i) x[j,d] }", tied, lambda n, x: EACH(n, x, lambda i, j: True, True))
check("argmax-behind", "model m(x: f32[N, D]) { return y[i:N,d] = argmax(j where j >= i) x[j,d] }", tied,
      lambda n, x: EACH(n, x, lambda i, j: True, False, True))
check("argmax-masked", "model m(x: f32[N, D], ok: bool[N]) { return y[i:N,d] = argmax(j where j <= i and ok[j]) x[j,d] }",
      lambda n: tied(n) | dict(ok=rng.uniform(size=n) < 0.5), lambda n, x, ok: EACH(n, x, lambda i, j: ok[j]))
check("argmax-integers", "model m(x: i32[N, D]) { return y[i:N,d] = argmax(j where j <= i) -x[j,d] }",
      lambda n: dict(x=rng.integers(-3, 3, (n, 5)).astype(np.int32)), lambda n, x: EACH(n, -x, lambda i, j: True))

SEGMENTS = "model m(x: f32[B, N, D], seg: i32[B, N]) { return y[b,i:N,d] = %s }"
ORDERS = [lambda seg: np.sort(seg, -1), lambda seg: -np.sort(-seg, -1), lambda seg: seg]
for name, code, reduce, neutral, how in [
    ("segments", "sum(j where j <= i and seg[b,j] == seg[b,i]) x[b,j,d]", lambda x: x.sum(0), 0, ()),
    ("segments-strict", "max(j where seg[b,i] == seg[b,j] and j < i) x[b,j,d]", lambda x: x.max(0), -np.inf, (True,)),
    ("segments-behind", "sum(j where j > i and seg[b,j] == seg[b,i]) x[b,j,d]^2", lambda x: (x * x).sum(0), 0, (True, True))]:
    for order in ORDERS:  # of any order: slower, and right
        check(name, SEGMENTS % code, lambda n: dict(x=uniform(2, n, 5), seg=order(rng.integers(0, 4, (2, n)).astype(np.int32))),
              lambda n, x, seg: np.stack([reduced(n, lambda part: reduce(x[b, part]), np.full(5, float(neutral)), lambda i, j: seg[b, i] == seg[b, j],
                                                  *how).reshape(n, 5) for b in range(2)]), says="if a call's segments are sorted")
# What one segment leaves does not reach another.
x, seg = uniform(2, 60, 5), np.repeat(np.arange(6), 10)[None].repeat(2, 0).astype(np.int32)
x[0, 13] = np.nan
expected = np.cumsum(x.astype(np.float64).reshape(2, 6, 10, 5), 2).reshape(2, 60, 5)
programs.compare(programs.folder + "/segments", dict(x=x, seg=seg), dict(y=expected))
long = dict(x=rng.integers(-3, 4, (1, 2**20, 1)).astype(np.float32), seg=np.sort(rng.integers(0, 2**18, (1, 2**20)).astype(np.int32)))
sums = np.cumsum(long["x"].astype(np.float64), 1)
first = np.searchsorted(long["seg"][0], long["seg"][0])
programs.compare(programs.folder + "/segments", long, dict(y=sums - sums[:, first] + long["x"][:, first]))
finish()
