# RUN: %python %s %heed_bin/heedc %t
"""Recurrences (`scan`) of every shape against float64 loops in NumPy, from both backends: one state and several, scalars and whole
tensors as start, rows that a step leaves, ranges that begin later, reversed and nested ones, in functions and layer loops, no step."""
import sys

import numpy as np

import programs
from runs import finish

programs.start(*sys.argv[1:])
rng = np.random.default_rng(16)
uniform = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)
#: Recurrent weights small enough that errors of a step die away.
weights = lambda *shape: uniform(*shape) / np.float32(shape[-1])
CASES = []


def renamed(function, name):
    copy = lambda **inputs: function(**inputs)
    copy.__name__ = name
    return copy


def case(source, names, sizes):
    """The decorated function takes float64 arrays and gives the results by name; `sizes`: shapes of the inputs by name."""
    def add(oracle):
        CASES.append((oracle.__name__, source, names, sizes, oracle))
        return oracle
    return add


@case("""model m(q, k: f32[B, H, N, E], v: f32[B, H, N, F]; gamma: f32[H]) {
  scan t in 0..N, S: f32[B, H, E, F] = 0 {
    S[b,h,e,f] = gamma[h] * S[b,h,e,f] + k[b,h,t,e] * v[b,h,t,f]
    o[b,h,t,f] = sum(e) q[b,h,t,e] * S[b,h,e,f]
  }
  return o, S
}""", ["o", "S"], [dict(q=(b, h, n, e), k=(b, h, n, e), v=(b, h, n, f), gamma=(h,))
                   for b, h, n, e, f in [(1, 1, 1, 1, 1), (2, 3, 5, 4, 7), (1, 2, 130, 16, 33), (2, 2, 0, 3, 4), (0, 2, 3, 3, 4)]])
def retention(q, k, v, gamma):
    B, H, N, E = q.shape
    S, o = np.zeros((B, H, E, v.shape[3])), np.zeros(v.shape)
    for t in range(N):
        S = gamma[:, None, None] * S + np.einsum("bhe,bhf->bhef", k[:, :, t], v[:, :, t])
        o[:, :, t] = np.einsum("bhe,bhef->bhf", q[:, :, t], S)
    return dict(o=o, S=S)


# Rows of known sizes lie as far apart in memory as those of the whole tensor do.
case("""model m(q, k: f32[B, 3, N, 4], v: f32[B, 3, N, 8]; gamma: f32[3]) {
  scan t in 0..N, S: f32[B, 3, 4, 8] = 0 {
    S[b,h,e,f] = gamma[h] * S[b,h,e,f] + k[b,h,t,e] * v[b,h,t,f]
    o[b,h,t,f] = sum(e) q[b,h,t,e] * S[b,h,e,f]
  }
  return o, S
}""", ["o", "S"], [dict(q=(b, 3, n, 4), k=(b, 3, n, 4), v=(b, 3, n, 8), gamma=(3,)) for b, n in [(1, 1), (2, 5), (3, 70)]])(
    renamed(retention, "retention_sized"))


@case("""# Rows counted back from the end of a tensor that has more of them than there are steps: not the last one first.
model m(x: f32[K, D], w: f32[D, D], y: f32[N]) {
  scan t in 0..N, r: f32[D] = 0 {
    r[d] = 0.5 * r[d] + y[t] * (sum(e) x[K - 1 - t, e] * w[d, e])
    z[t, d] = r[d]
  }
  return z
}""", ["z"], [dict(x=(k, d), w=(d, d), y=(n,)) for k, n, d in [(9, 4, 3), (5, 5, 2), (40, 33, 20)]])
def from_a_later_end(x, w, y):
    r, z = np.zeros(x.shape[1]), np.zeros((len(y), x.shape[1]))
    for t in range(len(y)):
        r = z[t] = 0.5 * r + y[t] * (w @ x[len(x) - 1 - t])
    return dict(z=z)


@case("""# A state whose columns are written in turn: their elements lie apart.
model m(x: f32[N, D], w: f32[3]; f0: f32[D, 3]) {
  scan t in 0..N, ring: f32[D, 3] = f0 {
    ring[d, t % 3] = x[t,d] + 0.5 * ring[d, (t + 1) % 3]
    y[t,d] = sum(k) ring[d,k] * w[k]
  }
  return y, ring
}""", ["y", "ring"], [dict(x=(n, d), w=(3,), f0=(d, 3)) for n, d in [(1, 1), (2, 4), (7, 5), (40, 33)]])
def columns(x, w, f0):
    ring, y = f0.copy(), np.zeros(x.shape)
    for t in range(len(x)):
        ring[:, t % 3] = x[t] + 0.5 * ring[:, (t + 1) % 3]
        y[t] = ring @ w
    return dict(y=y, ring=ring)


@case("""# A maximum of gates and a counter run ahead of the states that read them, before and after their steps, from a later step on.
model m(g: f32[B, N], x: f32[B, N, D], m0: f32[B], c0: f32) {
  scan t in 2..N, S: f32[B, D] = 0, m: f32[B] = m0, c: f32 = c0 {
    S[b,d] = exp(m[b] - 1) * S[b,d] + c * x[b,t,d]
    old = m
    m[b] = max(m[b] * 0.5, g[b,t])
    c = 1 / (c + 1)
    y[b,N+1-t,d] = S[b,d] * exp(old[b] - m[b]) + c
  }
  return y, S, m, c
}""", ["y", "S", "m", "c"], [dict(g=(b, n), x=(b, n, d), m0=(b,), c0=()) for b, n, d in [(1, 2, 1), (1, 3, 1), (2, 7, 5), (3, 100, 17)]])
def ahead(g, x, m0, c0):
    B, N, D = x.shape
    S, m, c, y = np.zeros((B, D)), m0, c0, np.zeros((B, N - 2, D))
    for t in range(2, N):
        S = np.exp(m - 1)[:, None] * S + c * x[:, t]
        old, m, c = m, np.maximum(m * 0.5, g[:, t]), 1 / (c + 1)
        y[:, N - 1 - t] = S * np.exp(old - m)[:, None] + c
    return dict(y=y, S=S, m=m, c=np.float64(c))


@case("""# Axes of one element beside the steps: MLIR would say by types alone which of them a row has not.
model m(x: f32[1, H, N, F]) {
  scan t in 0..N, S: f32[1, H, F] = 0, ring: f32[1, 1, 2, F] = 0 {
    S[b,h,f] = S[b,h,f] + x[b,h,t,f]
    ring[b, h:1, t % 2, f] = S[b,0,f]
    o[b,h,t,f] = S[b,h,f] + ring[0,0,0,f]
    last[h, f:F, b, t] = S[b,h,f]
  }
  return o, S, last
}""", ["o", "S", "last"], [dict(x=(1, *s)) for s in [(2, 3, 1), (1, 4, 5), (3, 1, 1), (3, 40, 20)]])
def ones(x):
    S = x.cumsum(2)
    first = [S[0, 0, t - t % 2] for t in range(x.shape[2])]
    return dict(o=S + np.stack(first), S=S[:, :, -1], last=S.transpose(1, 3, 0, 2))


@case("""model m(x: f32[B, N, D], w: f32[64, D], u: f32[64, 16], bias: f32[64]) {
  scan t in 0..N, h, c: f32[B, 16] = 0 {
    g[b, j:4, i:16] = (sum(d) x[b,t,d] * w[j*16 + i, d]) + (sum(k) h[b,k] * u[j*16 + i, k]) + bias[j*16 + i]
    c[b, i] = sigmoid(g[b,1,i]) * c[b,i] + sigmoid(g[b,0,i]) * tanh(g[b,2,i])
    h[b, i] = sigmoid(g[b,3,i]) * tanh(c[b,i])
    y[b, t, i] = h[b, i]
  }
  return y, c
}""", ["y", "c"], [dict(x=(b, n, d), w=(64, d), u=(64, 16), bias=(64,)) for b, n, d in [(1, 1, 1), (2, 2, 1), (3, 9, 20), (1, 40, 16), (1, 0, 3)]])
def lstm(x, w, u, bias):
    B, N, _ = x.shape
    sigmoid = lambda z: 1 / (1 + np.exp(-z))
    h = c = np.zeros((B, 16))
    y = np.zeros((B, N, 16))
    for t in range(N):
        i, f, g, o = np.split(x[:, t] @ w.T + h @ u.T + bias, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = y[:, t] = sigmoid(o) * np.tanh(c)
    return dict(y=y, c=c)


@case("""# Sums that no state enters: of rows counted back, of all rows so far, of the step itself, in a range that begins later.
model m(x: f32[N, D], w: f32[D, D]) {
  scan t in 1..N, s: f32[D] = 0 {
    a[d] = sum(e) x[t, e] * w[d, e]
    p[d] = sum(j:N where j < t) x[j, d]
    s[d] = 0.5 * s[d] + a[d] + p[d] / t
    y[t, d] = s[d]
  }
  scan t in 0..N, r: f32[D] = 0 {
    r[d] = 0.5 * r[d] + (sum(e) x[N - 1 - t, e] * w[d, e])
    z[N - 1 - t, d] = r[d]
  }
  return y, z
}""", ["y", "z"], [dict(x=(n, d), w=(d, d)) for n, d in [(1, 1), (2, 3), (37, 20)]])
def sums_of_inputs(x, w):
    N, D = x.shape
    s, r, y, z = np.zeros(D), np.zeros(D), np.zeros((N - 1, D)), np.zeros((N, D))
    for t in range(1, N):
        s = y[t - 1] = 0.5 * s + w @ x[t] + x[:t].sum(0) / t
    for t in reversed(range(N)):
        r = z[t] = 0.5 * r + w @ x[t]
    return dict(y=y, z=z)


@case("""model m(x: f32[B, N, D], w: f32[D, D], u: f32[D, D], h0: f32[B, D]) {
  scan t in 0..N, h: f32[B, D] = h0, count: i32 = 0 {
    old = h
    h[b, d] = tanh((sum(k) x[b, t, k] * w[d, k]) + (sum(k) h[b, k] * u[d, k]))
    change[b, t] = max(d) abs(h[b, d] - old[b, d])
    count = count + 1
  }
  return change, h, count
}""", ["change", "h", "count"], [dict(x=(b, n, d), w=(d, d), u=(d, d), h0=(b, d))
                                 for b, n, d in [(1, 1, 1), (2, 7, 5), (3, 40, 64), (1, 0, 4), (17, 9, 31)]])
def network(x, w, u, h0):
    h, changes = h0, np.zeros(x.shape[:2])
    for t in range(x.shape[1]):
        new = np.tanh(x[:, t] @ w.T + h @ u.T)
        changes[:, t] = np.abs(new - h).max(1)
        h = new
    return dict(change=changes, h=h, count=np.int32(x.shape[1]))


@case("""model m(x: f32[N, D]) {
  scan t in 0..N, a, b: f32[D] = 1, top: f32[D] = -inf {
    a[d] = a[d] * 0.5 + x[t, d]
    b[d] = b[d] - a[d]
    top[d] = max(top[d], b[d])
    left[d, N - 1 - t] = a[d] + x[N - 1 - t, d]
  }
  return left, a, b, top
}""", ["left", "a", "b", "top"], [dict(x=s) for s in [(1, 1), (6, 3), (100, 40), (0, 5)]])
def reversed_rows(x):
    N, D = x.shape
    a, b, top, left = np.ones(D), np.ones(D), np.full(D, -np.inf), np.zeros((D, N))
    for t in range(N):
        a = a * 0.5 + x[t]
        b = b - a
        top = np.maximum(top, b)
        left[:, N - 1 - t] = a + x[N - 1 - t]
    return dict(left=left, a=a, b=b, top=top)


@case("""model m(x: f32[N, D]; M = 2) {
  scan t in M..N, s: f32[D] = 0 {
    s[d] = s[d] + x[t, d] - x[t - M, d]
    y[t, d] = s[d] * (if t > M then x[t - 1, d] else 0)
    z[d, t] = t + 0 * i32(x[t, d])
  }
  return y, z
}""", ["y", "z"], [dict(x=s) for s in [(2, 3), (3, 1), (9, 33)]])
def from_two(x):
    N, D = x.shape
    s, y = np.zeros(D), np.zeros((N - 2, D))
    for t in range(2, N):
        s = s + x[t] - x[t - 2]
        y[t - 2] = s * (x[t - 1] if t > 2 else 0)
    return dict(y=y, z=np.broadcast_to(np.arange(2, N, dtype=np.int32), (D, N - 2)))


@case("""fn decayed(x: [B, N, D]; rate) {
  scan t in 0..N, s: f32[B, D] = 0 {
    s[b, d] = rate * s[b, d] + (1 - rate) * x[b, t, d]
    y[b, t, d] = s[b, d]
  }
  return y
}
model m(x: f32[B, N, D], w: f32[3, D, D]) {
  for l in 0..3 {
    y = decayed(x, rate = 0.5)
    z = decayed(y, rate = 0.75)
    x[b, n, d] = x[b, n, d] + (sum(e) z[b, n, e] * w[l, d, e])
  }
  return o = x
}""", ["o"], [dict(x=s, w=(3, s[2], s[2])) for s in [(1, 1, 1), (2, 9, 8), (1, 50, 20)]])
def in_layers(x, w):
    for l in range(3):
        y = x
        for rate in (0.5, 0.75):
            s, out = np.zeros_like(y[:, 0]), np.zeros_like(y)
            for t in range(y.shape[1]):
                s = rate * s + (1 - rate) * y[:, t]
                out[:, t] = s
            y = out
        x = x + y @ w[l].T
    return dict(o=x)


@case("""model m(x: f32[N, M, D]) {
  scan t in 0..N, s: f32[D] = 0 {
    before = s
    scan u in 0..M, r: f32[D] = before {
      r[d] = 0.5 * r[d] + x[t, u, d]
      y[t, d, u] = r[d] - s[d]
    }
    s = r
    ends[t, d] = s[d]
  }
  return y, ends
}""", ["y", "ends"], [dict(x=s) for s in [(1, 1, 1), (3, 4, 5), (7, 2, 33), (2, 0, 3), (0, 2, 3)]])
def nested(x):
    N, M, D = x.shape
    s, y, ends = np.zeros(D), np.zeros((N, D, M)), np.zeros((N, D))
    for t in range(N):
        r = s
        for u in range(M):
            r = 0.5 * r + x[t, u]
            y[t, :, u] = r - s
        s = ends[t] = r
    return dict(y=y, ends=ends)


@case("""model m(x: f32[B, N, D], length: i32[B]) {
  scan t in 0..N, h: f32[B, D] = 0 {
    h[b, d] = if t < length[b] then 0.5 * h[b, d] + x[b, t, d] else h[b, d]
    y[b, t, d] = if t < length[b] then h[b, d] else 0
  }
  return y, h
}""", ["y", "h"], [dict(x=(2, 6, 3), length=np.array([0, 4], np.int32)), dict(x=(3, 33, 20), length=np.array([1, 33, 17], np.int32))])
def lengths(x, length):
    B, N, D = x.shape
    h, y = np.zeros((B, D)), np.zeros(x.shape)
    for t in range(N):
        on = (t < length)[:, None]
        h = np.where(on, 0.5 * h + x[:, t], h)
        y[:, t] = np.where(on, h, 0)
    return dict(y=y, h=h)


@case("""# Each step attends to what earlier ones left: a state that is written row by row.
model m(x: f32[N, D], w: f32[D, D]) {
  scan t in 0..N, memory: f32[N, D] = 0 {
    s[j:N] = (sum(d) x[t, d] * memory[j, d]) / sqrt(D)
    p[j] = softmax(j where j < t) s[j]
    memory[t, d] = x[t, d] + (sum(j, e) p[j] * memory[j, e] * w[d, e])
  }
  return memory
}""", ["memory"], [dict(x=(n, d), w=(d, d)) for n, d in [(1, 1), (6, 4), (40, 16), (0, 3)]])
def feedback(x, w):
    m = np.zeros(x.shape)
    for t in range(len(x)):
        s = m[:t] @ x[t] / np.sqrt(x.shape[1])
        p = np.exp(s - s.max(initial=-np.inf)) if t else s
        m[t] = x[t] + (p / (p.sum() or 1)) @ m[:t] @ w.T if t else x[t]
    return dict(memory=m)


@case("""model m(x: f32[N, D]) {
  scan t in 0..N, ring: f32[4, D] = 0, s: f32 = 0 {
    ring[t % 4, d] = x[t, d]
    s = s + (sum(c, d) ring[c, d])
    y[t] = s
  }
  return y, ring
}""", ["y", "ring"], [dict(x=s) for s in [(1, 1), (3, 2), (21, 17)]])
def ring(x):
    N, D = x.shape
    ring, s, y = np.zeros((4, D)), 0.0, np.zeros(N)
    for t in range(N):
        ring[t % 4] = x[t]
        s += ring.sum()
        y[t] = s
    return dict(y=y, ring=ring)


@case("""# What a scan binds, its states and its rows, also of a scan in it, goes from turn to turn of the loop around.
model m(x: f32[N, M, D], h: f32[D]) {
  kept[n, m, d] = x[n, m, d]
  for l in 0..M {
    scan t in 0..N, h: f32[D] = h {
      scan u in 0..M, g: f32[D] = h {
        g[d] = 0.5 * g[d] + x[t, u, d]
        x[t, M - 1 - u, d] = g[d]
        kept[u, d] = g[d]
      }
      h[d] = 0.7 * h[d] - g[d]
    }
  }
  return x, h, kept
}""", ["x", "h", "kept"], [dict(x=s, h=(s[2],)) for s in [(3, 2, 5), (1, 1, 1), (0, 3, 2), (2, 0, 2), (4, 9, 17)]])
def carried(x, h):
    x, kept = x.copy(), x.copy()
    for _ in range(x.shape[1]):
        for t in range(len(x)):
            g, rows = h.copy(), []
            for u in range(x.shape[1]):
                g = 0.5 * g + x[t, u]
                rows.append(g)
            x[t] = rows[::-1]
            h = 0.7 * h - g
    return dict(x=x, h=h, kept=kept)


@case("""# An index that nothing reads plainly runs over the axis of the state.
model m(x: f32[N, D], w: f32[K]) {
  scan t in 0..N, last: f32[K, D] = 0 {
    last[k, d] = if k == 0 then x[t, d] else last[k - 1, d]
    y[t, d] = sum(k) w[k] * last[k, d]
  }
  return y, last
}""", ["y", "last"], [dict(x=(n, d), w=(k,)) for n, d, k in [(0, 2, 3), (1, 1, 1), (3, 2, 5), (21, 17, 4)]])
def shifted(x, w):
    last, y = np.zeros((len(w), x.shape[1])), np.zeros(x.shape)
    for t in range(len(x)):
        last[1:] = last[:-1].copy()
        last[0] = x[t]
        y[t] = w @ last
    return dict(y=y, last=last)


@case("""# What a value was before: a state that both lines need, and two that are exchanged.
model m(x: f32[N]) {
  scan t in 0..N, a: f32 = 1, b: f32 = 2 {
    c = a
    a = b
    b = c + x[t]
    y[t] = a - b
  }
  return y, a, b
}""", ["y", "a", "b"], [dict(x=(n,)) for n in (0, 1, 2, 9)])
def exchanged(x):
    a, b, y = 1.0, 2.0, np.zeros(len(x))
    for t in range(len(x)):
        a, b = b, a + x[t]
        y[t] = a - b
    return dict(y=y, a=a, b=b)


# A row whose one axis is two, both known in a call alone.
@case("""model m(a: f32[N, H*E], h: f32[H, E], w: f32[H, H]) {
  scan t in 0..N, h: f32[H, E] = h {
    h[u,e] = (sum(v) w[u,v] * h[v,e]) + a[t, u*E + e]
  }
  return h
}""", ["h"], [dict(a=(n, 12), h=(3, 4), w=(3, 3)) for n in (0, 1, 9)])
def split_rows(a, h, w):
    for row in a:
        h = w @ h + row.reshape(h.shape)
    return dict(h=h)


# Each element of a state is its own: a kernel takes several steps at once. States of several types, read before and after, in rows of any axes.
@case("""model m(x: f32[B, N, D], c: f32[D, R], g: f32[D], start: f32[B, D]) {
  scan t in 2..N, h: f32[B, D] = start, count: i32[B, D] = 3, top: f32[B, D] = -9 {
    o[b,r,N+1-t] = sum(d) c[d,r] * (h[b,d] + top[b,d])
    h[b,d] = tanh(g[d] * h[b,d]) + x[b,N-1-t,d] / (t + 1)
    top[b,d] = max(top[b,d], h[b,d])
    count[b,d] = if h[b,d] > 0 then count[b,d] + t else count[b,d]
    many[t,b,d] = count[b,d]
  }
  return o, many, h, count, top
}""", ["o", "many", "h", "count", "top"], [dict(x=(b, n, d), c=(d, 3), g=(d,), start=(b, d))
                                      for b, n, d in [(1, 2, 1), (2, 3, 5), (1, 66, 16), (2, 67, 17), (1, 70, 2100), (2, 200, 3)]])
def each_its_own(x, c, g, start):
    B, N, D = x.shape
    h, count, top, many = start, np.full((B, D), 3, np.int32), np.full((B, D), -9.0), np.zeros((N - 2, B, D), np.int32)
    o = np.zeros((B, c.shape[1], N - 2))
    for t in range(2, N):
        o[:, :, N - 1 - t] = (h + top) @ c
        h = np.tanh(g * h) + x[:, N - 1 - t] / (t + 1)
        top = np.maximum(top, h)
        count = count + np.where(h > 0, t, 0).astype(np.int32)
        many[t - 2] = count
    return dict(o=o, many=many, h=h, count=count, top=top)


# Likewise of states of other types, with rows of truth values, halves of rows, and a start that many lines made.
@case("""model m(x: f32[B, N, D], w: f32[D, D]) {
  z[b,d] = x[b,0,d]
  for l in 0..14 {
    z[b,d] = tanh(sum(e) w[d,e] * z[b,e]) + z[b,d]
  }
  scan t in 0..N, s: f16[B, D] = 0, n: i64[B, D] = 2, c: f32[B, D] = z {
    s[b,d] = f16(0.75 * s[b,d] + x[b,t,d])
    n[b,d] = if s[b,d] > 0 then n[b,d] + 1 else n[b,d]
    c[b,d] = 0.5 * c[b,d] + x[b,t,d]
    up[b,t,d] = c[b,d] > 0.5
    half[t,b,d] = s[b,d]
    y[b, t, d:D // 2] = c[b,2*d] - c[b,2*d + 1]
  }
  return up, half, y, s, n, c
}""", ["up", "half", "y", "s", "n", "c"], [dict(x=(b, n, d), w=(d, d)) for b, n, d in [(1, 1, 2), (2, 65, 5), (1, 130, 16), (2, 67, 1030)]])
def other_types(x, w):
    B, N, D = x.shape
    c = x[:, 0]
    for _ in range(14):
        c = np.tanh(c @ w.T) + c
    s, n = np.zeros((B, D), np.float16), np.full((B, D), 2)
    up, half, y = np.zeros((B, N, D), bool), np.zeros((N, B, D), np.float16), np.zeros((B, N, D // 2))
    for t in range(N):
        s = (np.float32(0.75) * s.astype(np.float32) + x[:, t].astype(np.float32)).astype(np.float16)
        n = n + (s > 0)
        c = 0.5 * c + x[:, t]
        up[:, t], half[t], y[:, t] = c > 0.5, s, (c[:, 0::2][:, :D // 2] - c[:, 1::2])
    return dict(up=up, half=half, y=y, s=s, n=n, c=c)


for name, source, names, sizes, oracle in CASES:
    compiled = [programs.compile(name, source), programs.compile(name + ".reference", source, "--backend=reference")]
    for shapes in sizes:
        inputs = {k: s if isinstance(s, np.ndarray) else (weights if k in "wu" else uniform)(*s) for k, s in shapes.items()}
        wanted = oracle(**{k: a.astype(np.float64) if a.dtype == np.float32 else a for k, a in inputs.items()})
        for program in compiled:
            programs.compare(program, inputs, {n: wanted[n] for n in names})
finish()
