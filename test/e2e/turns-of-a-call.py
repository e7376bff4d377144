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

# A number that a turn binds anew is carried, of the type that it has after a turn: a loss that layers add to, whose number only a call knows, a count, a best so far.
source = """fn layers(x: [N, D], w: [L, D, D]) {
  loss = 0.0
  for l in 0..L {
    x[n,d] = x[n,d] + tanh(sum(c) x[n,c] * w[l,c,d])
    loss = loss + (mean(n, d) x[n,d]^2)
  }
  return x, loss
}
model m(x: f32[N, D], w: f32[L, D, D]; turns: i32, more: i32, start: f32) {
  y, loss = layers(x, w)
  count = 0
  total = 0
  best = -inf
  at = -1
  odd = false
  wide = 2^40
  for t in 0..turns {
    for u in 0..more { count = count + u }
    total = total + x[t % N, 0]
    at = if total > best then t else at
    best = max(best, total)
    odd = not odd
    wide = wide + 1
    start = 0.5 * start + count
  }
  return y, loss, count, total, best, at, odd, start, wide = wide * 1.0
}"""
program = programs.compile("numbers", source)
slow = programs.compile("numbers-reference", source, "--backend=reference")
for L, turns, more in (0, 0, 2), (3, 4, 3), (1, 1, 0), (2, 7, 1):
    x, w = rng.uniform(-1, 1, (3, 4)).astype(np.float32), rng.uniform(-1, 1, (L, 4, 4)).astype(np.float32)
    y, loss = x.astype(np.float64), 0
    for l in range(L):
        y = y + np.tanh(y @ w[l])
        loss += (y * y).mean()
    totals = np.cumsum([0] + [x[t % 3, 0].astype(np.float64) for t in range(turns)])
    start, count = 3.0, 0
    for t in range(turns):
        count += sum(range(more))
        start = 0.5 * start + count
    best, at = (totals[1:].max(), totals[1:].argmax()) if turns else (-np.inf, -1)
    for target in program, slow:
        programs.compare(target, dict(x=x, w=w, turns=turns, more=more, start=3.0), dict(
            y=y, loss=np.array(float(loss)), count=np.array(count, np.int32), total=np.array(float(totals[-1])), best=np.array(best), at=np.array(at, np.int32),
            odd=np.array(turns % 2 == 1), start=np.array(start), wide=np.array(2.0**40)))
finish()
