# RUN: %python %s %heed_bin/heedc %t
"""Loops, and scans without rows, that turn as often as a call says: an integer it is given, from none on. Against NumPy."""
import sys

import numpy as np

import programs
from runs import finish

programs.start(*sys.argv[1:])
rng = np.random.default_rng(1623)


def settle(x, w, turns):
    for t in range(max(turns, 0)):
        x = np.tanh(x @ w.T / 3) + t / 8
    return x


def sinkhorn(x, turns):
    x = np.exp(x)
    for _ in range(max(turns, 0)):
        x = x / x.sum(-1, keepdims=True)
        x = x / x.sum(-2, keepdims=True)
    return x


SETTLE = """model m(x: f32[B, N], w: f32[N, N]; turns: i32) {
  for t in 0..turns { x[b,n] = tanh((sum(k) w[n,k] * x[b,k]) / 3) + t / 8 }
  return x
}"""
SCAN = """fn settled(x: [B, N], w: [N, N]; turns: i32) {
  scan t in 0..turns, y: f32[B, N] = x { y[b,n] = tanh((sum(k) w[n,k] * y[b,k]) / 3) + t / 8 }
  return y
}
model m(x: f32[B, N], w: f32[N, N]; turns: i64 = 5) { return x = settled(x, w, turns = turns) }"""
for name, source in ("loop", SETTLE), ("scan", SCAN):
    program = programs.compile(name, source)
    slow = programs.compile(name + "-reference", source, "--backend=reference")
    for turns in (-3, 0, 1, 2, 9):
        x, w = rng.uniform(-1, 1, (3, 11)).astype(np.float32), rng.uniform(-1, 1, (11, 11)).astype(np.float32)
        for target in program, slow:
            programs.compare(target, dict(x=x, w=w, turns=turns), dict(x=settle(x.astype(np.float64), w.astype(np.float64), turns)))

source = """fn balanced(x: [B, N, N]; turns: i32) {
  for t in 0..turns {
    x[b,i,j] = x[b,i,j] / (sum(j) x[b,i,j])
    x[b,i,j] = x[b,i,j] / (sum(i) x[b,i,j])
  }
  return x
}
model m(x: f32[B, N, N]; first: i32, more: i32) { return y = balanced(balanced(exp(x), turns = first), turns = more) }"""
program = programs.compile("sinkhorn", source)
for first, more in (0, 0), (1, 4), (6, 0):
    x = rng.uniform(-1, 1, (2, 9, 9)).astype(np.float32)
    programs.compare(program, dict(x=x, first=first, more=more), dict(y=sinkhorn(x.astype(np.float64), first + more)))
finish()
