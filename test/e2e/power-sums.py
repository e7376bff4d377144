# RUN: %python %s %heed_bin/heedc %t
"""Convolutions of what comes before with powers of the steps between are recurrences: averages, a state-space model's kernel written out, over pairs and over
lags, of a tensor or in place, with powers and exponentials, also of 0, of NaN and of numbers beyond 1. Against NumPy, and left alone where they are none."""
import sys

import numpy as np

import programs
from runs import finish

programs.start(*sys.argv[1:])
rng = np.random.default_rng(1626)
uniform = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)
LENGTHS = [1, 2, 63, 64, 65, 200]
SAYS = "a convolution with powers: a recurrence"


def kernel(a, n):
    """a^(i - j) up to i, 0 behind it: [.., i, j] for the axes of a."""
    lag = np.subtract.outer(np.arange(n), np.arange(n))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(lag >= 0, a.astype(np.float64)[..., None, None] ** np.maximum(lag, 0), 0)


def check(name, source, inputs, oracle, says=SAYS, lengths=LENGTHS):
    program = programs.compile(name, source, "--explain=all", says=says)
    slow = programs.compile(name + "-reference", source, "--backend=reference")
    for n in lengths:
        given = inputs(n)
        for target in [program, slow] if n < 70 else [program]:
            programs.compare(target, given, dict(y=oracle(n, **{k: v.astype(np.float64) for k, v in given.items()})))


average = lambda n: dict(x=uniform(2, n, 9), a=np.float32([0.5, 0.999, 0, 1, -0.75, 1e-30, 0.25, 0.9, -1]))
check("average", "model m(x: f32[B, N, D], a: f32[D]) { return y[b, i:N, d] = sum(j where j <= i) (1 - a[d]) * a[d] ^ (i - j) * x[b, j, d] }", average,
      lambda n, x, a: np.einsum("dij,bjd->bid", kernel(a, n), x) * (1 - a))
check("lags", "model m(x: f32[B, N, D], a: f32[D]) { return y[b, i:N, d] = sum(l:N where l <= i) x[b, i - l, d] * a[d] ^ l }", average,
      lambda n, x, a: np.einsum("dij,bjd->bid", kernel(a, n), x))

SSM = """model m(x: f32[N, I], A: f32[E], B: f32[I, E], C: f32[E, O], g: f32[N]) {
  K[n:N, i, c] = sum(e) B[i, e] * A[e] ^ n * C[e, c]
  return y[t, c] = g[t] * (sum(i, n where n <= t) x[t - n, i] * K[n, i, c])
}"""
ssm = lambda n: dict(x=uniform(n, 3), A=uniform(5), B=uniform(3, 5), C=uniform(5, 4), g=uniform(n))
check("ssm", SSM, ssm, lambda n, x, A, B, C, g: np.einsum("eij,jk,ke,ec->ic", kernel(A, n), x, B, C) * g[:, None])
# One output a channel, states of its own, read by what the query says.
check("channels", """model m(x, q: f32[B, N, D], dt: f32[D], A: f32[D, E], C: f32[D, E]) {
  return y[b, i:N, d] = sum(j, e where j <= i) q[b, i, d] * C[d, e] * exp(-(i - j) * dt[d] * abs(A[d, e])) * x[b, j, d]
}""", lambda n: dict(x=uniform(2, n, 6), q=uniform(2, n, 6), dt=np.abs(uniform(6)), A=uniform(6, 4), C=uniform(6, 4)),
      lambda n, x, q, dt, A, C: q * np.einsum("deij,bjd,de->bid", kernel(np.exp(-dt[:, None] * np.abs(A)), n), x, C))
# Two powers are one of their product; inf and NaN are seen from the step behind.
check("two", "model m(x: f32[N, D], a, c: f32[D]) { return y[i:N, d] = sum(j where j <= i) a[d] ^ (i - j) * x[j, d] * c[d] ^ (i - j) }",
      lambda n: dict(x=uniform(n, 3), a=uniform(3), c=uniform(3)), lambda n, x, a, c: np.einsum("dij,jd->id", kernel(a * c, n), x))
a = np.float32([np.nan, 0.5])
x = uniform(1, 40, 2)
program = programs.compile("nan", "model m(x: f32[B, N, D], a: f32[D]) { return y[b, i:N, d] = sum(j where j <= i) a[d] ^ (i - j) * x[b, j, d] }", "--explain=all",
                           says=SAYS)
want = np.einsum("ij,j->i", kernel(np.float32(0.5), 40), x[0, :, 1].astype(np.float64))
programs.compare(program, dict(x=x, a=a), dict(y=np.stack([np.r_[x[0, 0, 0], np.full(39, np.nan)], want], 1)[None]))
# exp(g 0) of a g that is no number is none.
program = programs.compile("exp-nan", "model m(x: f32[N, D], g: f32[D]) { return y[i:N, d] = sum(j where j <= i) exp(g[d] * (i - j)) * x[j, d] }", "--explain=all", says=SAYS)
x = uniform(40, 3)
want = np.einsum("ij,j->i", kernel(np.exp(np.float64(-0.5)), 40), x[:, 1].astype(np.float64))
programs.compare(program, dict(x=x, g=np.float32([np.nan, -0.5, np.inf])), dict(y=np.stack([np.full(40, np.nan), want, np.full(40, np.nan)], 1)))
# Quotients of keys.
check("quotients", "model m(x, w: f32[N, D], a: f32[D]) { return y[i:N, d] = sum(j where j <= i) a[d] ^ (i - j) * x[j, d] / (2 + w[j, d]) }",
      lambda n: dict(x=uniform(n, 3), w=uniform(n, 3), a=uniform(3)), lambda n, x, w, a: np.einsum("dij,jd->id", kernel(a, n), x / (2 + w)))
# None: a power that a query chooses, one of other steps, a strict bound.
for name, code in ("chosen", "a[i] ^ (i - j)"), ("doubled", "a[0] ^ (2 * (i - j))"):
    programs.compile(name, f"model m(x, a: f32[N]) {{ return y[i:N] = sum(j where j <= i) {code} * x[j] }}", "--explain=all", says="model m:")
finish()
