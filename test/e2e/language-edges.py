# RUN: %python %s %heed_bin/heedc %t loops hoisted conversions tables sums zeros sinks positions logarithms collections branches guards conditions dims remainders wraps
"""Where a fact about sizes holds, and where it no longer does: loops without a turn, what is computed outside the loops
that it does not use, guards. Every model through both backends."""
import numpy as np

from groups import f32, group, rng, run_wanted
from programs import compare, compile, outputs
from runs import expect, expect_error


def both(name, source):
    return [compile(f"{name}-{backend}", source, "--backend=" + backend) for backend in ("halide", "reference")]


@group
def loops():
    # That the loop reads w[l] says nothing about L behind it.
    for program in both("outlive", """
model m(x: f32[N, D], w: f32[L, D]) {
  for l in 0..L { x[n,d] = x[n,d] + w[l,d] }
  return y[n,d] = x[n,d] + w[0,d]
}"""):
        for n, l in ((2, 1), (3, 4), (0, 2), (0, 0)):
            x, w = f32(n, 3), f32(l, 3)
            compare(program, dict(x=x, w=w), dict(y=x.astype(np.float64) + w.sum(0) + (w[0] if l else 0)))
        expect_error(outputs(program, dict(x=f32(2, 3), w=f32(0, 3)), []),
                     "the index of 'w' (axis 0) runs from 0 to 0, its extent is L = 0")
    # What a loop checks is void where it has no turn, and is checked anew behind it.
    for program in both("checks", """
model m(x: f32[N], w: f32[L], k: f32[K]) {
  for l in 0..L {
    x[n:N] = x[n] * w[l] + k[n] + (sum(u:N // K) k[0])
  }
  return y[n] = x[n] + k[0]
}"""):
        for n, l, k in ((2, 1, 3), (3, 4, 3), (3, 0, 1), (0, 0, 2)):
            x, w, b = f32(n), f32(l), f32(k)
            y = x.astype(np.float64)
            for factor in w.astype(np.float64):
                y = y * factor + b[:n] + (n // k) * b[0].astype(np.float64)
            compare(program, dict(x=x, w=w, k=b), dict(y=y + b[0]))
        expect_error(outputs(program, dict(x=f32(3), w=f32(1), k=f32(2)), []), "index 'n' runs to N = 3, but 'k' (axis 0) has 2")
        expect_error(outputs(program, dict(x=f32(3), w=f32(0), k=f32(0)), []), "its extent is K = 0")
    # A loop that begins below 0.
    for program in both("below", """
model m(x: f32[N], w: f32[L]) {
  for l in L - 3..L { x[n] = x[n] + w[l] }
  return x
}"""):
        x, w = f32(2), f32(5)
        compare(program, dict(x=x, w=w), dict(x=x.astype(np.float64) + w[2:].astype(np.float64).sum()))
        expect_error(outputs(program, dict(x=x, w=f32(2)), []), "'w' (axis 0)")


@group
def hoisted():
    # The sum does not use n: it is computed also where N is 0, and must not read x then.
    for program in both("reduction", """
model m(x: f32[N], w: f32[K], s: f32[H, M], b: f32[B]) {
  y[n] = x[n] * (sum(k) w[k] * x[N-1])
  z[n] = x[n] * (mean(k where w[k] > x[N-1]) w[k])
  p[g:B, h, j] = b[g] * (softmax(j where s[h,j] > b[B-1]; sink = b[B-1]) (s[h,j] * b[B-1]))
  return y, z, p
}"""):
        for n, k, h, m, b in ((3, 4, 2, 3, 2), (0, 4, 2, 3, 0), (2, 0, 1, 0, 1), (0, 0, 0, 0, 0), (1, 1, 1, 1, 0)):
            x, w, s, c = f32(n), f32(k), f32(h, m), f32(b)
            y, wide, t, d = (a.astype(np.float64) for a in (x, w, s, c))
            last = y[-1] if n else 0
            kept = wide[wide > last]
            score = t * d[-1] if b else t
            e = np.where(t > d[-1], np.exp(score), 0) if b else np.zeros((h, m))
            p = e / (e.sum(1, keepdims=True) + (np.exp(d[-1]) if b else 1))
            compare(program, dict(x=x, w=w, s=s, b=c), dict(
                y=y * (wide.sum() * last), z=y * (kept.mean() if len(kept) else 0), p=d[:, None, None] * p[None]))


@group
def conversions():
    # A conversion to i32 wraps: its bounds are not those of its argument.
    for program in both("wrap", "model m(x: f32[N]) { return y[n:N] = x[i32(n) // 2], z[n:N] = x[i32(n * 4294967295) // 4294967295] }"):
        expect_error(outputs(program, dict(x=f32(3)), []), "= -1 is out of range for x (axis 0): expected 0 <= index < 3")
        x = f32(1)
        compare(program, dict(x=x), dict(y=x, z=x))


@group
def tables():
    # Tables of the text as tensors: exact where they are computed with.
    for program in both("tables", """
const w = [1.5, 0.1], far = [5000000000, -7], grid = [[0.25, 3.0], [1e-3, 2.5]], cut = [true, false]
model m(x: f32[N, D]) {
  a[n,d] = x[n,d] * w[n % 2]
  b[n,d] = x[n,d] + 10.0 ^ (w[n % 2] * d) * grid[n % 2, d % 2]
  c[n:N,d:D] = w[n % 2] * 1000000007.0 - 100000000.0
  e[n:N,d:D] = if cut[n % 2] then grid[d % 2, n % 2] else w[1]
  k[n:N] = far[n % 2] // 1000000
  l[n,d] = x[n,d] * (w[N % 2] * 3.0)
  return a, b, c, e, k, l, whole = w, squares = grid * grid
}"""):
        for n, d in ((0, 2), (1, 1), (7, 5)):
            x = f32(n, d)
            y, i, j = x.astype(np.float64), np.arange(n)[:, None], np.arange(d)[None, :]
            w, grid = np.array([1.5, 0.1]), np.array([[0.25, 3.0], [1e-3, 2.5]])
            compare(program, dict(x=x), dict(
                a=y * w[i % 2], b=y + 10.0 ** (w[i % 2] * j) * grid[i % 2, j % 2], c=w[i % 2] * 1000000007.0 - 1e8 + 0 * j,
                e=np.where(i % 2 == 0, grid[j % 2, i % 2], w[1]), k=(np.array([5000, -1])[i[:, 0] % 2]).astype(np.int32),
                l=y * (w[n % 2] * 3.0), whole=w, squares=grid * grid), tolerance=1e-7 if n < 2 else 3e-7)


@group
def sums():
    # A reduction over indices alone is evaluated in f64, whole, like every expression of them, and converted once.
    for program in both("sums", """
const w = [1.5, 0.1]
model m(x: f32[N], b: f32[K]) {
  a[n:N] = sum(o:33) o*0.5
  c[n:N] = (sum(o:K, p:3) (o*0.1 + p*n*w[p % 2])) - (sum(o:K) o*0.1)
  d[n:N] = mean(o:K) o*0.1
  e[n:N] = prod(o:7) (o*0.5 + n + 0.1)
  f[n:N] = max(o:3) (if n > 1 then o*0.5 - n else -inf)
  g[n:N] = min(o:K) (if o > n then o*0.25 else 7.5)
  h[n:N] = argmax(o:5) (0.5 - (o - 2.2) ^ 2)
  k[n:N] = mean(o:K where o % 3 == n % 3) o*0.1
  l[n:N] = sum(o:5) 0.0
  q[n:N] = sum(o:5) (sum(p:5 where p < o) p*0.1) * o
  t[n:N] = x[n] * (sum(o:33) o*0.1) + (sum(o:K) b[o] * (max(p:4) p*0.1 + n))
  u[n:N] = if (sum(o:10) 0.1*n) > 1.9 then x[n] else 0
  return a, c, d, e, f, g, h, k, l, q, t, u, s = sum(o:33) o*0.1
}"""):
        for n, k in ((0, 4), (1, 0), (5, 100000), (4, 1)):
            x, b = f32(n), f32(k)
            y, z, i = x.astype(np.float64), b.astype(np.float64), np.arange(n)
            o, over = np.arange(k), lambda values: np.array(values, np.float64).reshape(n)
            w = np.array([1.5, 0.1, 1.5])
            compare(program, dict(x=x, b=b), dict(
                a=over([264] * n), c=over([2 * (o*0.1).sum() + k * (np.arange(3) * m * w).sum() for m in i]),
                d=over([(o*0.1).mean() if k else 0] * n), e=over([np.prod(np.arange(7)*0.5 + m + 0.1) for m in i]),
                f=np.where(i > 1, 1.0 - i, -np.inf), g=over([np.where(o > m, o*0.25, 7.5).min(initial=np.inf) for m in i]),
                h=np.full(n, 2, np.int32), k=over([(o*0.1)[o % 3 == m % 3].mean() if (o % 3 == m % 3).any() else 0 for m in i]),
                l=np.zeros(n), q=over([sum(r * np.arange(r).sum() * 0.1 for r in range(5))] * n),
                u=np.where(i >= 2, y, 0), s=(np.arange(33)*0.1).sum()), tolerance=1e-7)
            compare(program, dict(x=x, b=b), dict(t=y * (np.arange(33)*0.1).sum() + z.sum() * (0.3 + i)))


@group
def zeros():
    # Division by a zero that is known is IEEE's.
    for program in both("zeros", "model m(x: f32[N]) { return a = x / 0, b = x / 0.0, c = x / (-0.0), d = 1 / (x * 0), e = x % 0.0, f = 0 / x, g = x / (0 * 5) }"):
        x = np.array([1, -2, 0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38] * 3, np.float32)
        y = x.astype(np.float64)
        with np.errstate(all="ignore"):
            compare(program, dict(x=x), dict(a=y / 0, b=y / 0, c=y / -0.0, d=1 / (x * np.float32(0)), e=y % 0.0, f=0 / y, g=y / 0))


@group
def sinks():
    # A static extent and a symbolic one that must be it.
    for program in both("static", """
model m(s: f32[7, N], b: f32[H], t: f32[H, N], c: f32[7]) {
  p[h,j] = softmax(j; sink = b[h]) s[h,j]
  q[h,j] = softmax(j; sink = c[h]) t[h,j]
  r[h,j] = log_softmax(j; sink = b[h]) (s[h,j] * t[h,j])
  return p, q, r, o[h*N + j] = t[h,j] * c[h]
}"""):
        for n in (0, 1, 9):
            s, b, t, c = f32(7, n), f32(7), f32(7, n), f32(7)
            u, v = s.astype(np.float64), t.astype(np.float64)
            share = lambda x, sink: np.exp(x) / (np.exp(x).sum(1, keepdims=True) + np.exp(sink.astype(np.float64))[:, None])
            compare(program, dict(s=s, b=b, t=t, c=c), dict(
                p=share(u, b), q=share(v, c), r=np.log(share(u * v, b)), o=(v * c[:, None]).ravel()))
        expect_error(outputs(program, dict(s=f32(7, 2), b=f32(6), t=f32(6, 2), c=f32(7)), []), "7")


@group
def positions():
    # A position that data decides is called by the input's name, or by what is written.
    for program in both("positions", """
fn pick(x: [K], at: [N, M]) { return y[n,m] = x[at[n,m]] }
model m(x: f32[K], y: f32[L], ids: i32[N, M]; far: f32[J]) {
  return a = pick(x, ids), b[n,m] = y[2*ids[n,m] - 3], c[n] = if n > 0 then far[ids[n,0]] else 0
}"""):
        good = dict(x=f32(9), y=f32(20), far=f32(4), ids=np.array([[7, 2], [3, 4]], np.int32))
        wide = good["ids"].astype(np.int64)
        compare(program, good, dict(a=good["x"][wide], b=good["y"][2 * wide - 3], c=[0, good["far"][3]]))
        for inputs, text in ((dict(good, x=f32(7)), "ids[0, 0] = 7 is out of range for x (axis 0): expected 0 <= index < 7"),
                             (dict(good, y=f32(11)), "(2*ids[n,m]-3)[0] = 11 is out of range for y (axis 0): expected 0 <= index < 11"),
                             (dict(good, far=f32(3)), "(ids[n,0])[1] = 3 is out of range for far (axis 0): expected 0 <= index < 3")):
            expect_error(outputs(program, inputs, []), text)

    # One element at a position that data decides: a kernel without loops.
    for program in both("one", "model m(x: f32[N], ids: i32[M]) { return s = x[ids[0]] * 2.0 }"):
        x = f32(5)
        compare(program, dict(x=x, ids=np.array([3, 1], np.int32)), dict(s=x[3].astype(np.float64) * 2))

    # Of an empty table no position is inside, the one before its first neither; x says which are reached.
    for program in both("nothing", """
model m(x: f32[N], table: f32[P], at: i32) {
  return y[n] = x[n] + table[at + n], z[n] = if x[n] > 0 then table[at + n] else 0
}"""):
        x, table = np.array([1, -1], np.float32), f32(5)
        compare(program, dict(x=x, table=table, at=2), dict(y=x + table[2:4].astype(np.float64), z=[table[2], 0]))
        for rows, at in (0, -1), (0, 0), (0, 1), (5, -1), (5, 5):
            expect_error(outputs(program, dict(x=x[:1], table=f32(rows), at=at), []), "is out of range for table (axis 0)")

@group
def logarithms():
    # ilog2, and other built-ins of integers, of a size that only a call knows: as a value, an extent and in a range.
    for program in both("ilog2", """
fn slopes(x: [H, N]; of) {
  dim L = ilog2(of)
  return y[h,n] = x[h,n] * 2.0 ^ (-8 * (h + 1) / 2.0 ^ L)
}
model m(x: f32[H, N]) {
  a[h,n] = x[h,n] * ilog2(H)
  b[h,k:ilog2(H) + 1] = x[h,0] * k + sign(N - 3)
  c[k:ilog2(H*N)] = x[k,0]
  return a, b, c, d = slopes(x, of = H), e = ilog2(H * N), f[h:min(ilog2(H), abs(N - 2))] = x[h,0]
}"""):
        for h, n in ((1, 1), (2, 3), (7, 1), (8, 2), (9, 5), (64, 1), (33, 20)):
            x = f32(h, n)
            y, log, product = x.astype(np.float64), h.bit_length() - 1, (h * n).bit_length() - 1
            if product > h:
                expect_error(outputs(program, dict(x=x), []), "x")
                continue
            compare(program, dict(x=x), dict(
                a=y * log, b=y[:, :1] * np.arange(log + 1) + np.sign(n - 3), c=y[:product, 0], e=np.int32(product),
                d=y * 2.0 ** (-8 * np.arange(1, h + 1) / 2.0 ** log)[:, None], f=y[:min(log, abs(n - 2)), 0]))
        expect_error(outputs(program, dict(x=f32(0, 2)), []), "'ilog2' of H = 0: expected 1 or more")


@group
def collections():
    # A part of a collection is read, by an index or as a slice; what is absent in a slice stays absent.
    for program in both("collections", """
fn twice(w: [A, B]) { return y[a,b] = w[a,b] * 2 }
fn gain(x, w) = x * w
model m(x: f32[N, D], w: f32[L, N, D], v: f32[D, F]; K = 2) {
  let hs: f32[4, N, D], ps: f32[2, N, D]
  hs[0, n, d] = x[n,d]
  hs[1, n, d] = x[n,d] * 3
  hs[2, n, d] = x[n,d] - 1
  for l in 0..L { x = x + twice(w[l]) }
  for k in 0..K { x = gain(x, hs[k]) - hs[k] }
  ps[0, n, d] = softmax(d where d <= n) hs[0,n,d]
  ps[1, n, d] = softmax(d) hs[1,n,d]
  return y = x, a[n,d] = sum(m:2) hs[m,n,d], b[n,d] = sum(m:2) hs[m + 1,n,d] * (m + 1), c = twice(hs[2]),
    e[p,n,f] = sum(d) ps[p,n,d] * v[d,f], last = w[L-1]
}"""):
        for n, d, l in ((3, 4, 1), (0, 2, 3), (5, 1, 2)):
            x, w, v = f32(n, d), f32(l, n, d), f32(d, 2)
            z = x.astype(np.float64)
            y = (z + 2 * w.astype(np.float64).sum(0)) * z - z
            first = np.where(np.arange(d) <= np.arange(n)[:, None], np.exp(z), 0)
            p = np.stack([first, np.exp(3 * z)])
            p /= p.sum(-1, keepdims=True)
            if d > 1 and n:
                v[n:] = np.nan  # behind the first row's keys nothing shows
            known = np.nan_to_num(v.astype(np.float64))
            both_rows = p @ known
            compare(program, dict(x=x, w=w, v=known.astype(np.float32)), dict(
                y=y * 3 * z - 3 * z, a=4 * z, b=3 * z + 2 * (z - 1), c=2 * (z - 1), e=both_rows, last=w[-1]))
            got = outputs(program, dict(x=x, w=w, v=v), ["e"])
            expect(isinstance(got, dict) and np.isfinite(got["e"][0]).all() and np.allclose(got["e"][0], both_rows[0], atol=1e-5), f"absent in {program}")
        expect_error(outputs(program, dict(x=f32(2, 2), w=f32(0, 2, 2), v=f32(2, 2)), []), "'w' (axis 0)")


@group
def branches():
    # w[e] stands in a branch whose condition alone keeps it in range: the range of e is that of x.
    for program in both("kept", """
model m(x: f32[N, E]; R = 8) {
  dim T = R / 2
  w[t:T] = 10000.0 ^ (-2 * t / R)
  y[n,e] = if e < T then x[n, e + T] * w[e] else x[n, e]
  z[n,e] = if e >= T then x[n, e] else (if e > 1 then w[e] else w[e + 1])
  return y, z
}"""):
        for n, e in ((0, 8), (1, 8), (3, 13), (2, 9)):
            x = f32(n, e)
            y, w = x.astype(np.float64), 10000.0 ** (-2 * np.arange(5) / 8)
            z = y.copy()
            z[:, :4] = np.where(np.arange(4) > 1, w[:4], w[1:])
            y[:, :4] = y[:, 4:8] * w[:4]
            compare(program, dict(x=x), dict(y=y, z=z))
        expect_error(outputs(program, dict(x=f32(2, 7)), []), "a guarded index of 'x' (axis 1) leaves its extent E = 7, expected 7 < E")


@group
def guards():
    # An inlined argument that stands in both branches is computed for each.
    for program in both("branches", """
fn f(a, c) = if c > 0 then a else a * 2
model m(x: f32[K], ids: i32[N], c: f32[N], s: f32[N, 3]) {
  y[n] = f(sum(u:2) x[ids[n] + u], c[n])
  return y, z[n,j] = f(softmax(j) (s[n,j] * x[ids[n]]), c[n])
}"""):
        x, ids, c, s = f32(9), rng.integers(0, 7, 12).astype(np.int32), f32(12), f32(12, 3)
        wide = x.astype(np.float64)
        by = np.where(c > 0, 1, 2)
        e = np.exp(s * wide[ids][:, None])
        compare(program, dict(x=x, ids=ids, c=c, s=s), dict(
            y=by * (wide[ids] + wide[ids + 1]), z=by[:, None] * e / e.sum(1, keepdims=True)))
    # A sink and a table are under the guards around too. A softmax is of all scores, whichever of them are asked for.
    for program in both("sinks", """
const powers = [3, 4, 5]
model m(s: f32[H, N], b: f32[H], x: f32[H, N], ids: i32[N]) {
  y[h,j] = x[h,j] + (if h > 0 then 2 * (softmax(j; sink = b[h-1]) s[h,j]) else 0)
  z[h,j] = x[h,j] + (if h < 3 then 2.0 ^ powers[h] else 0)
  w[h,j] = x[h,j] + (if j > 0 then softmax(j) (s[h,ids[j]]) else 0)
  return y, z, w
}"""):
        for h, n in ((5, 4), (1, 1), (2, 7)):
            s, b, x, ids = f32(h, n), f32(h), f32(h, n), rng.integers(0, n, n).astype(np.int32)
            e, wide = np.exp(s.astype(np.float64)), x.astype(np.float64)
            p = e / (e.sum(1, keepdims=True) + np.exp(np.roll(b, 1).astype(np.float64))[:, None])
            q = e[:, ids] / e[:, ids].sum(1, keepdims=True)
            p[0] = q[:, 0] = 0
            powers = np.where(np.arange(h) < 3, 2.0 ** (3 + np.arange(h)), 0)
            compare(program, dict(s=s, b=b, x=x, ids=ids), dict(y=wide + 2 * p, z=wide + powers[:, None], w=wide + q))


@group
def conditions():
    # A divisor of sizes is checked where a loop has a turn; under a guard that asks for it, where the guard holds.
    for program in both("divisors", """
model m(x: f32[H, N], k: f32[G, N], u: f32[M]) {
  y[h,i] = if H // G > 0 then x[h,i] + k[min(h // (H // G), G - 1),i] else x[h,i]
  return y, z[h:H,i,m] = u[m] * k[h // (H // G),i]
}"""):
        for h, g, n in ((6, 3, 2), (0, 3, 2), (4, 4, 0)):
            x, k, u = f32(h, 2), f32(g, 2), f32(n)
            wide, w = x.astype(np.float64), k.astype(np.float64)
            group = np.arange(h) // max(h // g, 1)
            z = w[group][:, :, None] * u.astype(np.float64) if n else np.zeros((h, 2, 0))
            compare(program, dict(x=x, k=k, u=u), dict(y=wide + (w[np.minimum(group, g - 1)] if h // g else 0), z=z))
        expect_error(outputs(program, dict(x=f32(2, 2), k=f32(3, 2), u=f32(2)), []), "integer '//' by zero")
        expect_error(outputs(program, dict(x=f32(5, 2), k=f32(2, 2), u=f32(2)), []), "is out of range for k (axis 0)")
    # The branch that a static condition leaves away has no bounds, and no part in a position or a guard (T5's buckets).
    for program in both("static-branches", """
fn bucket(d; both) = (if both then (if d > 0 then 4 else 0) else none_of(d)) + min(abs(d), 3)
fn none_of(d) = 0
fn inside(i, n; open) = if open then 0 <= i < n else i == 0
model m(x: f32[N], table: f32[8]) {
  y[i,j:N] = x[i] + table[bucket(j - i, both = true)] - table[bucket(i - j, both = false)]
  z[i:N] = (if inside(i - 1, N, open = true) then x[i - 1] else 0) + (if inside(i - 1, N, open = false) then x[i - 1] else 0)
  return y, z
}"""):
        x, table = f32(6), f32(8)
        d = np.arange(6) - np.arange(6)[:, None]
        small = np.minimum(abs(d), 3)
        wide, t = x.astype(np.float64), table.astype(np.float64)
        before = np.concatenate([[0], wide[:-1]])
        compare(program, dict(x=x, table=table), dict(
            y=wide[:, None] + t[small + 4 * (d > 0)] - t[small], z=before + np.where(np.arange(6) == 1, before, 0)))
    # What is read in a condition, itself under another, and again where that holds: a log-sum-exp of CTC's states. The
    # condition does not stand under itself.
    for program in both("conditions", """
fn safe(a, b) = if max(a, b) == -inf then -inf else a + b
model m(a: f32[B, L], n: i32[B]) {
  return y[b] = safe(a[b,0], if n[b] == 0 then -inf else a[b,n[b]-1])
}"""):
        a, n = f32(5, 6), np.array([0, 1, 6, 3, 0], np.int32)
        wide = a.astype(np.float64)
        compare(program, dict(a=a, n=n), dict(y=wide[:, 0] + np.where(n > 0, wide[np.arange(5), n - 1], -np.inf)))
        expect_error(outputs(program, dict(a=a, n=n + 1), []), "= 6 is out of range for a (axis 1)")
    # A position of -1 (an argmax of nothing) that is reached under a guard is outside of an axis of 0 elements, too; where nothing is reached such an axis is fine.
    for program in both("guarded-none", """
model m(l: f32[T, X], s: f32[X, D], on: bool[T]) {
  c[t] = argmax(e) l[t, e]
  return y[t, d] = if on[t] then s[c[t], d] else 7.0
}"""):
        on = np.array([False, True, False])
        compare(program, dict(l=f32(3, 0), s=f32(0, 2), on=on & False), dict(y=np.full((3, 2), 7.0)))
        expect_error(outputs(program, dict(l=f32(3, 0), s=f32(0, 2), on=on), []), "(c[t])[1] = -1 is out of range for s (axis 0)")


@group
def dims():
    # A dim that an extent gives is not negative: k[2] is there.
    for program in both("solved", "model m(k: f32[2*R + 3]) { return y[r:R] = k[r] + k[2] }"):
        for extent in (3, 5, 9):
            k = f32(extent)
            compare(program, dict(k=k), dict(y=k.astype(np.float64)[:(extent - 3) // 2] + k[2]))
        expect_error(outputs(program, dict(k=f32(1)), []), "the extent of axis 0 of 'k' gives R = -1: a dim is not negative")
        expect_error(outputs(program, dict(k=f32(4)), []), "the extent of axis 0 of 'k' is 4: no 'R' gives it")


@group
def remainders():
    # What is left is small where the quotient is large: a product of it that was rounded to f32 would be off by more than that.
    for program in both("remainders", """
model m(x, y: f32[N], h: f16[N]; tenth = 0.1) {
  turn[i:N] = (i * 0.37 + 0.0123) % 0.7
  return a[i] = x[i] % y[i], b[i] = x[i] % 3, c[i] = x[i] % -2.5, d[i] = x[i] % 0.5, e[i] = h[i] % 0.1, f[i] = x[i] % (2*pi), turn, g = 1000.05 % tenth
}"""):
        n = 512
        x = (np.array([1e2, 1e5, 1e7, 4e8], np.float32).repeat(n // 4) * rng.uniform(-1, 1, n)).astype(np.float32)
        y, h = (10 ** rng.uniform(0.1, 1, n) * rng.choice([-1, 1], n)).astype(np.float32), np.clip(x, -6e4, 6e4).astype(np.float16)
        wide, tenth = x.astype(np.float64), float(np.float32(0.1))
        left = lambda u, v: np.float32(np.mod(u, v)).astype(np.float64)  # rounded once; exact but where a negative number is near 0
        compare(program, dict(x=x, y=y, h=h), dict(
            a=left(wide, y.astype(np.float64)), b=left(wide, 3), c=left(wide, -2.5), d=left(wide, 0.5), f=left(wide, float(np.float32(2 * np.pi))),
            e=np.float16(np.mod(h.astype(np.float64), tenth)).astype(np.float64), turn=np.mod(np.arange(n) * 0.37 + 0.0123, 0.7), g=np.mod(1000.05, 0.1)), tolerance=1e-7)


@group
def wraps():
    # Integers are i64 and wrap: no rule that holds of unbounded ones, x * x >= 0 or (2 * x) // 2 == x, may be taken of them.
    for program in both("wraps", """
model m(x: i64[N], k: i32[N]; prime = 6364136223846793005) {
  h[i] = x[i] * x[i] % 1000003
  scan t in 0..N, s: i64 = 1 {
    s = s * prime + x[t]
    r[t] = s * s % 97
  }
  return h, r, a[i] = x[i] * x[i] >= 0, b[i] = x[i] + 1 > x[i], c[i] = (x[i] * 2) // 2, d[i] = x[i] * 6 // 3, e[i] = (7 * x[i] + 3) // 7, f[i] = sign(x[i] * x[i]), g[i] = (x[i] - 5) // 5, l[i] = k[i] * k[i] * k[i] * k[i] % 11, q[i] = if x[i] * 2 > 0 then 1 else 0
}"""):
        ends = [2**62, -(2**62), 2**63 - 1, -(2**63), 2**61 + 1, 2**33]
        x = np.concatenate([ends, rng.integers(-(2**62), 2**62, 35)]).astype(np.int64)
        k = np.concatenate([rng.integers(-(2**31), 2**31, len(x) - 2), [2**31 - 1, -(2**31)]]).astype(np.int32)
        n, prime = len(x), np.int64(6364136223846793005)
        with np.errstate(over="ignore"):
            s, r = np.int64(1), np.empty(n, np.int64)
            for t in range(n):
                s = s * prime + x[t]
                r[t] = s * s % 97
            w = k.astype(np.int64)
            compare(program, dict(x=x, k=k), dict(
                h=x * x % 1000003, r=r, a=x * x >= 0, b=x + 1 > x, c=x * 2 // 2, d=x * 6 // 3, e=(7 * x + 3) // 7, f=np.sign(x * x), g=(x - 5) // 5,
                l=(w * w * w * w % 11), q=(x * 2 > 0).astype(np.int32)))


run_wanted()
