# RUN: %python %s %heed_bin/heedc %t
"""Reductions over what comes before, or behind, at a cost that grows with the length: sums, products, maxima and minima of reals and of integers, truth values,
along any axis, strict and not, against NumPy. A million elements say that it is linear."""
import sys

import numpy as np

import programs
from runs import finish

programs.start(*sys.argv[1:])
rng = np.random.default_rng(1621)
uniform = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)
LENGTHS = [0, 1, 2, 15, 16, 17, 63, 64, 65, 200]


def prefix(x, axis, reduce, neutral, strict=False, behind=False):
    """What `reduce` makes of x along `axis` up to each place, or from it on."""
    out = np.full(x.shape, neutral, x.dtype if x.dtype.kind == "i" else np.float64)
    n = x.shape[axis]
    for i in range(n):
        part = range(i + strict, n) if behind else range(i + 1 - strict)
        if len(part):
            out[(slice(None),) * axis + (i,)] = reduce(np.take(x, part, axis), axis=axis)
    return out


def check(name, source, shape, oracle, dtype=np.float32, says="a recurrence"):
    program = programs.compile(name, source, "--explain=all", says=says)
    slow = programs.compile(name + "-reference", source, "--backend=reference")
    for n in LENGTHS:
        x = uniform(*shape(n)) if dtype == np.float32 else rng.integers(-9, 9, shape(n)).astype(dtype)
        for target in [program, slow] if n < 70 else [program]:
            programs.compare(target, dict(x=x), dict(y=oracle(x.astype(np.float64) if dtype == np.float32 else x)))


rows = lambda n: (2, n, 17)
check("sum", "model m(x: f32[B, N, D]) { return y[b,i:N,d] = sum(j where j <= i) x[b,j,d] }", rows, lambda x: np.cumsum(x, 1))
check("strict", "model m(x: f32[B, N, D]) { return y[b,i:N,d] = sum(j where i > j) x[b,j,d]^2 }", rows,
      lambda x: prefix(x * x, 1, np.sum, 0, strict=True))
check("behind", "model m(x: f32[B, N, D]) { return y[b,i:N,d] = sum(j where j >= i) 2 * x[b,j,d] }", rows,
      lambda x: prefix(2 * x, 1, np.sum, 0, behind=True))
check("max", "model m(x: f32[B, N, D]) { return y[b,d,i:N] = max(j where j <= i) x[b,j,d] }", rows, lambda x: np.maximum.accumulate(x, 1).swapaxes(1, 2))
check("min", "model m(x: f32[B, N, D]) { return y[b,i:N,d] = min(j where i < j) x[b,j,d] }", rows,
      lambda x: prefix(x, 1, np.min, np.inf, strict=True, behind=True))
check("prod", "model m(x: f32[N, B]) { return y[i:N,b] = prod(j where j <= i) (1 - x[j,b] / 50) }", lambda n: (n, 20), lambda x: np.cumprod(1 - x / 50, 0))
check("mean", "model m(x: f32[B, N]) { return y[b,i:N] = mean(j where j <= i) x[b,j] }", lambda n: (3, n),
      lambda x: np.cumsum(x, 1) / np.arange(1, x.shape[1] + 1))
check("integers", "model m(x: i32[N, D]) { return y[i:N,d] = sum(j where j <= i) x[j,d] }", lambda n: (n, 5), lambda x: np.cumsum(x, 0).astype(np.int32), np.int32)
check("largest", "model m(x: i64[N]) { return y[i:N] = max(j where j <= i) x[j] }", lambda n: (n,), lambda x: np.maximum.accumulate(x), np.int64)
check("vector", "model m(x: f32[N]) { return y[i:N] = sum(j where j <= i) x[j] }", lambda n: (n,), np.cumsum)
check("any", "model m(x: f32[B, N, D]) { return y[b,i:N,d] = any(j where j <= i) (x[b,j,d] > 0.95) }", rows,
      lambda x: np.logical_or.accumulate(x > 0.95, 1))
check("all", "model m(x: f32[N, D]) { return y[i:N,d] = all(j where j > i) (x[j,d] < 0.95) }", lambda n: (n, 6),
      lambda x: prefix((x < 0.95).astype(np.int64), 0, np.min, 1, strict=True, behind=True).astype(bool))


def softmaxes(x, behind=False):
    """The weights [.., N, N] of what comes before each place, or from it on, along the last axis."""
    n = x.shape[-1]
    s = np.where(np.triu(np.ones((n, n), bool)) if behind else np.tril(np.ones((n, n), bool)), x[..., None, :], -np.inf)
    with np.errstate(invalid="ignore"):
        top = s.max(-1, keepdims=True, initial=-np.inf)
        return np.where(np.isneginf(s) & np.isfinite(top), 0, np.exp(s - top)), top[..., 0]


STABLE = """model m(x: f32[B, N], v: f32[B, N, F]; w: f32[N]) {
  top[b,i:N] = max(j where j <= i) 100 * x[b,j]
  s[b,i] = sum(j where j <= i) exp(100 * x[b,j] - top[b,i])
  y[b,i,f] = (sum(j where j <= i) w[i] * exp(100 * x[b,j] - top[b,i]) * v[b,j,f]) / s[b,i]
  l[b,i] = top[b,i] + log(s[b,i])
  return y, l
}"""
stable = programs.compile("stable", STABLE, "--explain=all", says="a recurrence")
for n in LENGTHS:
    x, v, w = uniform(2, n), uniform(2, n, 5), uniform(n)
    p, top = softmaxes(100 * x.astype(np.float64))
    y = w[:, None] * np.einsum("bij,bjf->bif", p, v) / p.sum(-1)[..., None]
    programs.compare(stable, dict(x=x, v=v, w=w), dict(y=y, l=top + np.log(p.sum(-1))))
check("stable-behind", "model m(x: f32[B, N]) { top[b,i:N] = max(j where j >= i) x[b,j]\n return y[b,i] = sum(j where i <= j) exp(x[b,j] - top[b,i]) }",
      lambda n: (3, n), lambda x: softmaxes(x, behind=True)[0].sum(-1))
check("outside", "model m(x: f32[B, N]) { return y[b,i] = sum(j where j < i) x[b,i] * x[b,j] / 3 }", lambda n: (3, n),
      lambda x: x * prefix(x, 1, np.sum, 0, strict=True) / 3)
# Along rows: more of them than a vector has lanes, and fewer; of several axes; of 16 bits.
for rows_of in [1, 16, 33]:
    check(f"rows-{rows_of}", "model m(x: f32[B, N]) { return y[b,i:N] = sum(j where j <= i) x[b,j] }", lambda n: (rows_of, n), lambda x: np.cumsum(x, 1))
check("rows-behind", "model m(x: f32[B, H, N]) { return y[b,h,i:N] = sum(j where j >= i) x[b,h,j] / 2 }", lambda n: (2, 19, n),
      lambda x: prefix(x / 2, 2, np.sum, 0, behind=True))
check("rows-strict", "model m(x: f32[B, N]) { return y[b,i:N] = max(j where j < i) x[b,j] }", lambda n: (18, n),
      lambda x: prefix(x, 1, np.max, -np.inf, strict=True))
check("rows-integers", "model m(x: i64[B, N]) { return y[b,i:N] = sum(j where j <= i) x[b,j] }", lambda n: (21, n), lambda x: np.cumsum(x, 1), np.int64)
LSE = """model m(x: f32[B, N]) { top[b,i:N] = max(j where j CMP i) 100 * x[b,j]
  return y[b,i] = top[b,i] + log(sum(j where j CMP i) exp(100 * x[b,j] - top[b,i])) }"""
for name, source, behind in [("lse", LSE.replace("CMP", "<="), False), ("lse-behind", LSE.replace("CMP", ">="), True)]:
    check(name, source, lambda n: (35, n), lambda x: (lambda p, top: top + np.log(p.sum(-1)))(*softmaxes(100 * x, behind)), says="stand side by side")
check("lse-outer", LSE.replace("[b,j]", "[j,b]").replace("[b,i:N]", "[i:N,b]").replace("[b,i]", "[i,b]").replace("[B, N]", "[N, B]").replace("CMP", "<="),
      lambda n: (n, 35), lambda x: (lambda p, top: (top + np.log(p.sum(-1))).T)(*softmaxes(100 * x.T)), says="stand side by side")
# Longer than the steps that a kernel takes at once, and not by a whole block.
x = uniform(17, 9000)
programs.compare(programs.folder + "/rows-33", dict(x=x), dict(y=np.cumsum(x.astype(np.float64), 1)))
# Terms of -inf alone are NaN, and leave nothing to what comes then; NaN and inf stay.
x = np.full((3, 40), -np.inf, np.float32)
x[0, 2:], x[1, 5:] = uniform(38), uniform(35)
x[1, 20], x[2, 7] = np.nan, np.inf
v, w = uniform(3, 40, 5), uniform(40)
s = np.where(np.tril(np.ones((40, 40), bool)), 100 * x[:, None, :].astype(np.float64), -np.inf)
with np.errstate(invalid="ignore", divide="ignore"):
    top = np.maximum.accumulate(100 * x.astype(np.float64), -1)
    p = np.where(np.tril(np.ones((40, 40), bool)), np.exp(s - top[..., None]), 0)
    y = w[:, None] * np.stack([[sum((p[b, i, j] * v[b, j] for j in range(i + 1)), np.zeros(5)) for i in range(40)] for b in range(3)]) / p.sum(-1)[..., None]
    programs.compare(stable, dict(x=x, v=v, w=w), dict(y=y, l=top + np.log(p.sum(-1))))
# A NaN is seen from it on.
x = uniform(1, 130, 17)
x[0, 70, 4] = np.nan
programs.compare(programs.folder + "/sum", dict(x=x), dict(y=np.cumsum(x.astype(np.float64), 1)))
# Terms that depend on the query are none of these.
programs.compile("pairs", "model m(x: f32[N], w: f32[N]) { return y[i] = sum(j where j <= i) tanh(x[j] - w[i]) }", "--explain=all", says="model m:")

long = rng.integers(-9, 9, (2**20, 2)).astype(np.int32)
programs.compare(programs.folder + "/integers", dict(x=long), dict(y=np.cumsum(long, 0).astype(np.int32)))
# Equal terms are always rounded the same way: an f32 would be 1 % off in the end.
tenth = np.full((2**20, 2), 0.1, np.float32)
programs.compare(programs.compile("outer", "model m(x: f32[N, D]) { return y[i:N,d] = sum(j where j <= i) x[j,d] }"), dict(x=tenth),
                 dict(y=np.cumsum(tenth.astype(np.float64), 0)), tolerance=1e-7)
programs.compare(programs.compile("rows", "model m(x: f32[D, N]) { return y[d,i:N] = sum(j where j <= i) x[d,j] }"), dict(x=tenth.T.copy()),
                 dict(y=np.cumsum(tenth.T.astype(np.float64), 1)), tolerance=1e-7)
# So would factors, and the sums of exponentials below their maximum.
programs.compare(programs.compile("factors", "model m(x: f32[N]) { return y[i:N] = prod(j where j <= i) x[j] }"), dict(x=np.full(2**20, 1 - 1e-6, np.float32)),
                 dict(y=np.cumprod(np.full(2**20, np.float32(1 - 1e-6), np.float64))), tolerance=1e-7)
steps = np.zeros((1, 2**20), np.float32)
steps[0, 0] = 0.01
top = 100 * np.float64(steps[0, 0])
programs.compare(programs.folder + "/lse", dict(x=steps), dict(y=top + np.log(np.cumsum(np.exp(100 * steps.astype(np.float64) - top), 1))), tolerance=2e-7)
finish()
