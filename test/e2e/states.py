# RUN: env PYTHONPATH=%heed_src/python:%heed_src/test/support %python %s %heed_bin/heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""States: a cache that entries update in place, a ring, states that are assigned whole, of one number, shared by entries. One call with a whole prompt, one for
each token and chunks of 7 give what the model without a cache gives (NumPy); a call that fails leaves its state as it was. Both backends."""
import os
import sys
import tempfile

import numpy as np

os.environ["HEEDC"] = sys.argv[1]
import heed
import safetensors_file
from oracles import parts, softmax
from runs import expect, fails, finish

rng = np.random.default_rng(1701)
uniform = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)
scratch = tempfile.TemporaryDirectory()


def model(name, source, **options):
    path = os.path.join(scratch.name, name + ".heed")
    with open(path, "w") as file:
        file.write(source)
    return {backend: heed.compile(path, backend=backend, **options) for backend in (None, "reference")}


def near(found, wanted, what, tolerance=2e-5):
    expect(np.shape(found) == np.shape(wanted) and np.allclose(found, wanted, rtol=0, atol=tolerance), f"{what}: {np.abs(np.asarray(found) - wanted).max()}")


# A decoder of three layers, whose rolled loop updates its caches in place.
LAYERS = """model layers(; L = 3, H = 2) {
  state kc, vc: f32[L, B, H, C, E], len: i32[B], seen: i32
  param wq, wk, wv, wo: f32[L, D, D]
  entry forward(x: f32[B, N, D]) {
    dim E = D / H
    for l in 0..L {
      q[b,n,d] = sum(c) x[b,n,c] * wq[l,c,d]
      k[b,n,d] = sum(c) x[b,n,c] * wk[l,c,d]
      v[b,n,d] = sum(c) x[b,n,c] * wv[l,c,d]
      kc[l,b,h,len[b] + n,e] = k[b,n,h*E + e]
      vc[l,b,h,len[b] + n,e] = v[b,n,h*E + e]
      s[b,h,i,j:C] = (sum(e) q[b,i,h*E+e] * kc[l,b,h,j,e]) / sqrt(E)
      p[b,h,i,j] = softmax(j where j <= len[b] + i) s[b,h,i,j]
      o[b,i,h,e] = sum(j) p[b,h,i,j] * vc[l,b,h,j,e]
      m[b,n,h*E+e] = o[b,n,h,e]
      x[b,n,d] = x[b,n,d] + sum(c) m[b,n,c] * wo[l,c,d]
    }
    len[b] = len[b] + N
    seen = seen + N
    return x
  }
}"""
# The same through functions that change their caller's states, for prompts of several lengths.
SHARED = """fn store(x: [B, N, D], count, at: [B], state cache: [L, B, H, C, E]; l) {
  cache[l,b,h,at[b] + n,e] = x[b,n,h*E + e] where n < count[b]
}
fn trunk(x: [B, N, D], count: [B], state kc, vc: [L, B, H, C, E], state len: i32[B]) {
  param wq, wk, wv, wo: f32[L, D, D]
  dim E = D / H
  for l in 0..L {
    q[b,n,d] = sum(c) x[b,n,c] * wq[l,c,d]
    k[b,n,d] = sum(c) x[b,n,c] * wk[l,c,d]
    v[b,n,d] = sum(c) x[b,n,c] * wv[l,c,d]
    store(k, count, len, kc, l = l)
    store(v, count, len, cache = vc, l = l)
    s[b,h,i,j:C] = (sum(e) q[b,i,h*E+e] * kc[l,b,h,j,e]) / sqrt(E)
    p[b,h,i,j] = softmax(j where j <= len[b] + i) s[b,h,i,j]
    m[b,i,h*E+e] = sum(j) p[b,h,i,j] * vc[l,b,h,j,e]
    x[b,n,d] = x[b,n,d] + sum(c) m[b,n,c] * wo[l,c,d]
  }
  len[b] = len[b] + count[b]
  return x
}
model shared(; L = 3, H = 2) {
  state kc, vc: f32[L, B, H, C, E], len: i32[B]
  entry last(x: f32[B, N, D], count: i32[B]) {
    y = trunk(x, count, kc, vc, len)
    return z[b,d] = y[b, max(count[b], 1) - 1, d]
  }
  entry all(x: f32[B, N, D], count: i32[B]) {
    y = trunk(x, count, kc, vc, len)
    return y
  }
}"""
L, H, B, T, D = 3, 2, 2, 40, 12
weights = {name: uniform(L, D, D) / 2 for name in ("wq", "wk", "wv", "wo")}


def layers(x, window=None):
    x = x.astype(np.float64)
    b, n, d = x.shape
    heads = lambda y: y.reshape(b, n, H, d // H).transpose(0, 2, 1, 3)
    i, j = np.arange(n)[:, None], np.arange(n)
    mask = (j <= i) & (True if window is None else j > i - window)
    for l in range(L):
        q, k, v = (heads(x @ weights[w][l]) for w in ("wq", "wk", "wv"))
        p = softmax(np.einsum("bhie,bhje->bhij", q, k) / np.sqrt(d // H), live=mask)
        x = x + np.einsum("bhij,bhje->bihe", p, v).reshape(b, n, d) @ weights["wo"][l]
    return x


x = uniform(B, T, D)
for backend, m in model("layers", LAYERS, weights=weights).items():
    for sizes in [(T,), (1,), (7,), (1, 16, 2)]:
        what = f"layers, {backend}, calls of {sizes}"
        state = m.state(B=B, C=T, E=D // H)
        got = np.concatenate([m(x[:, a:z], state=state).copy() for a, z in parts(T, sizes)], axis=1)
        near(got, layers(x), what)
        expect(state["len"].tolist() == [T] * B and state["seen"] == T and state["seen"].shape == (), f"{what}: {state['len']}, {state['seen']}")
        # Full: nothing is changed, not even in the layers before.
        before = {name: state[name] for name in state.names}
        fails(heed.RangeError, f"(len[b]+n)[0] = {T} is out of range for kc (axis 3): expected 0 <= index < {T}", lambda: m(x[:, :1], state=state), what)
        expect(all(np.array_equal(before[name], state[name]) for name in before), f"{what}: a full cache has changed")
        # What the caches hold decides: a state that is shorter again, then the same tokens.
        state["len"] = np.full(B, T - 9, np.int32)
        near(m(x[:, T - 9:], state=state), layers(x)[:, T - 9:], what + ", trimmed")
    two, one = m.state(B=B, C=T, E=D // H), m.state(B=B, C=T, E=D // H)
    m(x[:, :11], state=one)
    two.copy_from(one)
    m(x[::-1, 11:12], state=one)
    near(m(x[:, 11:], state=two), layers(x)[:, 11:], f"layers, {backend}, a copy")
    two.permute("B", [1, 1])
    expect(two["kc"].shape == (L, B, H, T, D // H) and np.array_equal(two["kc"][:, 0], two["kc"][:, 1]) and two["len"].tolist() == [T, T], "permuted")
    two.reset()
    near(m(x, state=two), layers(x), f"layers, {backend}, after a reset")
    fails(heed.RunError, "entry 'forward' needs a state", lambda: m(x), backend)
    fails(heed.RunError, "needs dim 'C'", lambda: m.state(B=2, E=6), backend)
    fails(heed.RunError, "no state of the model has a dim 'N': expected 'B', 'C', 'E'", lambda: m.state(B=2, C=2, E=6, N=1), backend)
    fails(heed.ShapeError, "expected 0 to", lambda: m.state(B=-1, C=2, E=6), backend)
    fails(heed.ShapeError, "extent of 'kc' (axis 1) is 3, expected B = 2", lambda: m(x, state=m.state(B=3, C=T, E=6)), backend)
    fails(heed.RangeError, "expected 0 <= position < 2", lambda: two.permute("B", [0, 2]), backend)
    fails(heed.ShapeError, "expected 2 positions", lambda: two.permute("B", [0]), backend)
    fails(heed.RunError, "no state 'kd'", lambda: two["kd"], backend)
    fails(heed.ShapeError, "state 'len': expected shape [2], found [3]", lambda: two.__setitem__("len", np.zeros(3, np.int32)), backend)

for backend, m in model("shared", SHARED, weights=weights).items():
    state, done = m.state(B=B, C=T, E=D // H), np.zeros(B, np.int32)
    for step in [(5, 9), (0, 1), (7, 3), (1, 0), (11, 11)]:
        count = np.array(step, np.int32)
        part = np.zeros((B, count.max(), D), np.float32)
        for b in range(B):
            part[b, :count[b]] = x[b, done[b]:done[b] + count[b]]
        other = m.state(B=B, C=T, E=D // H)
        other.copy_from(state)
        last = m["last"](part, count, state=other)
        got = m["all"](part, count, state=state)
        expect(all(np.array_equal(state[name], other[name]) for name in state.names), f"shared, {backend}, {step}: entries differ in their states")
        for b in np.flatnonzero(count):
            rows = slice(done[b], done[b] + count[b])
            near(got[b, :count[b]], layers(x)[b, rows], f"shared, {backend}, {step}, row {b}")
            near(last[b], layers(x)[b, rows.stop - 1], f"shared, {backend}, {step}, last of row {b}")
        done += count
    expect(state["len"].tolist() == done.tolist() == [24, 24], f"shared, {backend}: {state['len']}")

# A window of 8 in a ring: the key at position p is that of the last token that went there.
RING = LAYERS.replace("model layers(; L", "model ring(; W = 8, L").replace("len[b] + n,e", "(len[b] + n) % C,e").replace(
    "j <= len[b] + i)", "(len[b] + i - j) % C < W and (len[b] + i - j) % C <= len[b] + i)")
for backend, m in model("ring", RING, weights=weights).items():
    for sizes in [(1,), (3,), (5, 1)]:
        state = m.state(B=B, C=8 + max(sizes) - 1, E=D // H)
        got = np.concatenate([m(x[:, a:z], state=state).copy() for a, z in parts(T, sizes)], axis=1)
        near(got, layers(x, 8), f"ring, {backend}, calls of {sizes}")
    fails(heed.ShapeError, "'n' runs over N = 12 positions of a ring of C = 11", lambda: m(x[:, :12], state=m.state(B=B, C=11, E=D // H)), f"ring, {backend}")

# A prompt longer than the ring writes what stays of it; a grid's rows and columns; pages of one sequence; a number that a function is given is its caller's state.
KEPT = """fn keep(x: [B, N, E], state ring: [B, C, E], at: i32; unguarded = false) {
  if unguarded {
    ring[b, (at + n) % C, e] = x[b, n, e] where n >= 0
  } else {
    ring[b, (at + n) % C, e] = x[b, n, e] where n >= N - C
  }
}
model kept(; unguarded = false) {
  state ring: f32[B, C, E], grid: f32[B, R, 5, E], pool: f32[U, 4, E], len: i32
  entry forward(x: f32[B, N, E], table: i32[T]) {
    keep(x, ring, len, unguarded = unguarded)
    grid[b, (len + n) // 5, (len + n) % 5, e] = x[b, n, e]
    pool[table[(len + n) // 4], (len + n) % 4, e] = x[0, n, e]
    len = len + N
    return y[b, e] = max(c) ring[b, c, e]
  }
}"""
table = np.array([2, 7, 1, 0, 5, 3, 6, 4], np.int32)
for backend, m in model("kept", KEPT).items():
    for sizes in [(1,), (3,), (29, 1), (5, 13)]:
        state = m.state(B=B, C=7, E=D, R=6, U=8)
        for a, z in parts(30, sizes):
            got = m(x[:, a:z], table, state=state)
        expect(np.array_equal(state["ring"][:, np.arange(23, 30) % 7], x[:, 23:30]), f"kept, ring, {backend}, calls of {sizes}")
        expect(np.array_equal(state["grid"].reshape(B, 30, D), x[:, :30]), f"kept, grid, {backend}, calls of {sizes}")
        expect(np.array_equal(state["pool"][table].reshape(32, D)[:30], x[0, :30]), f"kept, pool, {backend}, calls of {sizes}")
        near(got, x[:, 23:30].max(1), f"kept, {backend}, calls of {sizes}")
for backend, m in model("overwritten", KEPT, set={"unguarded": True}).items():
    state = m.state(B=B, C=7, E=D, R=6, U=8)
    m(x[:, :7], table, state=state)
    fails(heed.RangeError, "two elements of an update of 'ring' go to one place", lambda: m(x[:, 7:15], table, state=state), f"overwritten, {backend}")
    fails(heed.RangeError, "two elements of an update of 'pool' go to one place", lambda: m(x[:, 7:13], table * 0, state=state), f"overwritten pages, {backend}")

# A scan's state with the name of a model's: what it is after the steps is assigned, also in a function, also in a loop.
SCANNED = """fn remember(x: [B, N, E], state mem: [B, E]) {
  scan t in 0..N, mem: f32[B, E] = mem {
    mem[b, e] = 0.5 * mem[b, e] + x[b, t, e]
    y[b, t, e] = mem[b, e]
  }
  return y
}
model scanned(; L = 3) {
  state mem: f32[B, E]
  entry forward(x: f32[B, N, E]) {
    for l in 0..L { x = remember(x, mem) }
    return x
  }
}"""
for backend, m in model("scanned", SCANNED).items():
    state, mem = m.state(B=B, E=D), np.zeros((B, D))
    for a, z in parts(12, (5, 1)):
        want = x[:, a:z].astype(np.float64)
        for l in range(3):
            for t in range(z - a):
                mem = 0.5 * mem + want[:, t]
                want[:, t] = mem
        near(m(x[:, a:z], state=state), want, f"scanned, {backend}")
        near(state["mem"], mem, f"scanned, {backend}, the state")

# States that are assigned whole, one as a result, too; a second entry reads them. A call that fails after that has not assigned them.
COUNTER = """model counter {
  state total: f32[N], steps: i32
  entry step(x: f32[N], at: i32[K]) -> f32[N], i32, f32[K] {
    total[n] = total[n] + x[n]
    steps = steps + 1
    return total, steps, y[k] = total[at[k]]
  }
  entry peek(scale: f32[N]) { return y[n] = scale[n] * total[n], steps }
}"""
for backend, m in model("counter", COUNTER).items():
    state, sum_ = m.state(N=5), np.zeros(5)
    for k in range(4):
        x5 = uniform(5)
        sum_ = sum_ + x5
        got = m["step"](x5, np.array([4, 0, 4], np.int32), state=state)
        near(got.total, sum_, f"counter, {backend}")
        near(got.y, sum_[[4, 0, 4]], f"counter, {backend}")
        expect(got.steps == k + 1, f"counter, {backend}: {got.steps}")
        seen = m["peek"](np.full(5, 2, np.float32), state=state)
        near(seen.y, 2 * sum_, f"peek, {backend}")
        expect(seen.steps == k + 1, f"peek, {backend}: {seen.steps}")
        fails(heed.RangeError, "at[1] = 5 is out of range", lambda: m["step"](x5, np.array([0, 5], np.int32), state=state), backend)
    near(state["total"], sum_, f"counter, {backend}, the state")
    expect(state["steps"] == 4, f"counter, {backend}: {state['steps']}")

# Sizes that are known only behind the first update, and in a layer's turn; positions of the turn; a state as the result itself; entries with the names of kernels, of
# the compiler's own functions, of C's.
LATE = """model late {
  state kc: f32[L, C], len: i32, half: f16[C], on: bool[C], wide: i64[C]
  entry main(k: f32[N], at: i64[N]) {
    kc[0, len + n] = k[n]
    param t: f32[M]
    kc[1, (len + n) % M] = k[n] + t[0]
    for l in 2..4 {
      param u: f32[K] @ "u.{l}"
      kc[l, (len + n + l) % K] = k[n] * u[0]
    }
    half[at[n]] = k[n]
    on[at[n]] = k[n] > 0
    wide[at[n]] = at[n]
    wide[C - 1] = 7
    len = len + N
    return y[l, c] = kc[l, c], wide
  }
  entry init(x: f32[N]) { return y[n] = x[n] + len }
  entry main_elementwise(x: f32[N]) { return y[n] = 2 * x[n] }
}"""
late = {"t": uniform(9), "u.2": uniform(8), "u.3": uniform(8)}
for backend, m in model("late", LATE, weights=late).items():
    state, cells, wide = m.state(L=4, C=10), np.zeros((4, 10)), np.zeros(10)
    length, signs, halves = 0, np.zeros(10, bool), np.zeros(10, np.float16)
    for n in 3, 0, 5, 1:
        k, at = uniform(n), rng.permutation(9)[:n].astype(np.int64)
        positions = length + np.arange(n)
        cells[0, positions], cells[1, positions % 9] = k, k + late["t"][0]
        cells[2, (positions + 2) % 8], cells[3, (positions + 3) % 8] = k * late["u.2"][0], k * late["u.3"][0]
        halves[at], signs[at], wide[at], wide[9] = k, k > 0, at, 7
        length += n
        got = m(k, at, state=state)
        near(got.y, cells, f"late, {backend}, {n} elements")
        expect(np.array_equal(got.wide, wide) and np.array_equal(state["wide"], wide), f"late, {backend}: {got.wide}")
        expect(np.array_equal(state["on"], signs) and np.allclose(state["half"].astype(np.float32), halves, atol=1e-3), f"late, {backend}: {state['on']}")
    near(m["init"](k, state=state), k + length, f"init, {backend}")
    near(m["main_elementwise"](k, state=state), 2 * k, f"main_elementwise, {backend}")
    state["len"] = np.int32(0)
    before = {name: state[name] for name in state.names}
    fails(heed.ShapeError, "positions of a ring of 8 = 8", lambda: m(uniform(9), np.arange(9, dtype=np.int64), state=state), backend)
    expect(all(np.array_equal(before[name], state[name]) for name in before), f"late, {backend}: a call that failed has changed a state")

# What several entries pack of the same weights is kept once.
LAYER = """  entry {}(x: f32[N, D]) {{
    for l in 0..3 {{ x[n, d] = x[n, d] + sum(c) x[n, c] * w[l, c, d] }}
    return y[n, f] = sum(d) x[n, d] * v[d, f]
  }}
"""
shared = {"w": uniform(3, 100, 100) / 10, "v": uniform(100, 96)}
x5 = uniform(40, 100)
wanted = x5.astype(np.float64)
for l in range(3):
    wanted = wanted + wanted @ shared["w"][l]
copies = {}
for names in ("one",), ("one", "two"):
    file = os.path.join(scratch.name, "shared.safetensors")
    safetensors_file.write(file, shared)
    source = "model shared {\n  param w: f32[L, D, D], v: f32[D, F]\n" + "".join(LAYER.format(name) for name in names) + "}\n"
    m = model("shared", source, weights=file)[None]
    for name in names:
        near(m[name](x5) / 100, wanted @ shared["v"] / 100, f"entry {name} of {names}")
    copies[names] = m.memory().copies
expect(copies[("one",)] == copies[("one", "two")] > 0, f"copies of weights: {copies}")

# Pages of 4 tokens that a table names, prompts of several lengths, rows that join and leave between calls.
PAGED = """model paged(; H = 2, E = 6, P = 4) {
  state pool: f32[R, P, H, E], values: f32[R, P, H, E], len: i32[B]
  entry forward(q: f32[B, N, H, E], k: f32[B, N, H, E], v: f32[B, N, H, E], table: i32[B, K], count: i32[B]) -> f32[B, N, H, E] {
    pool[table[b, (len[b] + n) // P], (len[b] + n) % P, h, e] = k[b,n,h,e] where n < count[b]
    values[table[b, (len[b] + n) // P], (len[b] + n) % P, h, e] = v[b,n,h,e] where n < count[b]
    s[b,h,i,j:K*P] = (sum(e) q[b,i,h,e] * pool[table[b, j // P], j % P, h, e]) / sqrt(E)
    p[b,h,i,j] = softmax(j where j <= len[b] + i and i < count[b]) s[b,h,i,j]
    o[b,i,h,e] = sum(j) p[b,h,i,j] * values[table[b, j // P], j % P, h, e]
    len[b] = len[b] + count[b]
    return o
  }
}"""
E, K, P, R = 6, 5, 4, 11
for backend, m in model("paged", PAGED).items():
    state = m.state(B=B, R=R)
    table = rng.permutation(R)[: B * K].reshape(B, K).astype(np.int32)
    past, k, v = [0] * B, uniform(B, K * P, H, E), uniform(B, K * P, H, E)
    for n, counts in [(5, [5, 2]), (1, [0, 1]), (3, [3, 3]), (6, [1, 6])]:
        q = uniform(B, n, H, E)
        new = [np.zeros((B, n, H, E), np.float32) for _ in "kv"]
        for b in range(B):
            for array, whole in zip(new, (k, v)):
                array[b, : counts[b]] = whole[b, past[b] : past[b] + counts[b]]
        got = m(q, *new, table, np.array(counts, np.int32), state=state)
        for b in range(B):
            for i in range(n):
                want = np.zeros((H, E))
                if i < counts[b]:
                    live = past[b] + i + 1
                    scores = np.einsum("he,jhe->hj", q[b, i].astype(np.float64), k[b, :live]) / np.sqrt(E)
                    want = np.einsum("hj,jhe->he", softmax(scores), v[b, :live])
                near(got[b, i], want, f"paged, {backend}, row {b}, query {i} of {counts}")
        past = [a + c for a, c in zip(past, counts)]
    expect(state["len"].tolist() == past, f"paged, {backend}: {state['len']}")
    before = {name: state[name] for name in state.names}
    clash, ones = np.full((B, K), 3, np.int32), uniform(B, 1, H, E)
    state["len"] = np.zeros(B, np.int32)
    fails(heed.Error, "two elements of an update of 'pool' go to one place", lambda: m(ones, ones, ones, clash, np.ones(B, np.int32), state=state), backend)
    m(ones, ones, ones, clash, np.array([1, 0], np.int32), state=state)  # of which one alone is written
    fails(heed.RangeError, "is out of range for", lambda: m(ones, ones, ones, clash + 8, np.array([1, 0], np.int32), state=state), backend)

# Into a file and back, in another state of the same model and dims; what does not fit is refused and changes nothing.
both = model("layers", LAYERS, weights=weights)
m = both[None]
state = m.state(B=B, C=T, E=D // H)
m(x[:, :11], state=state)
path = os.path.join(scratch.name, "state.safetensors")
state.save(path)
other = m.state(B=B, C=T, E=D // H)
other.load(path)
near(m(x[:, 11:], state=other), layers(x)[:, 11:], "a state from a file")
theirs = both["reference"].state(B=B, C=T, E=D // H)
theirs.load(path)
near(both["reference"](x[:, 11:], state=theirs), layers(x)[:, 11:], "a state from another backend's file")
held = {name: other[name] for name in other.names}
fails(heed.ShapeError, "state 'kc': expected shape [3, 2, 2, 41, 6], found [3, 2, 2, 40, 6]", lambda: m.state(B=B, C=T + 1, E=D // H).load(path), "other dims")
fails(heed.RunError, "it holds the state of another model than 'ring'", lambda: model("ring", RING, weights=weights)[None].state(B=B, C=T, E=6).load(path), "another model")
data = bytearray(open(path, "rb").read())
for place, text in (len(data) - 5, "it is damaged: its checksum"), (3, ""), (40, ""):
    broken = bytearray(data)
    broken[place] ^= 16
    with open(path, "wb") as file:
        file.write(broken)
    fails(heed.RunError, text, lambda: other.load(path), f"byte {place} is another")
with open(path, "wb") as file:
    file.write(data[:-7])
fails(heed.RunError, "", lambda: other.load(path), "a truncated file")
fails(heed.RunError, "cannot be", lambda: other.load(os.path.join(scratch.name, "none")), "no file")
fails(heed.RunError, "/dev/full", lambda: other.save("/dev/full/x"), "no folder")
expect(all(np.array_equal(held[name], other[name]) for name in held), "a file that was refused has changed a state")
finish()
