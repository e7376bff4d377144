# RUN: env PYTHONPATH=%heed_src/python:%heed_src/test/support %python %s %heed_bin/heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""heed_state_trim: after a draft that is rejected everything is as if it had never been run, to the bit; models of which that would be wrong refuse, and name the state."""
import os
import sys

import numpy as np

os.environ["HEEDC"] = sys.argv[1]
import heed
from runs import expect, fails, finish

rng = np.random.default_rng(1703)
uniform = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)
B, C, E, L = 2, 24, 6, 2


# A cache of two layers; a state that nobody reads; one of the encoder alone; pages.
CACHE = """model cache(; L = 2, P = 4) {
  state kc: f32[L, B, C, E], pool: f32[R, P, E], memory: f32[B, E], len: i32[B], calls: i32
  entry encode(x: f32[B, E]) {
    memory[b,e] = 2 * x[b,e]
    len[b] = 0
    return y[b,e] = x[b,e]
  }
  entry forward(x: f32[B, N, E], table: i32[B, K], count: i32[B]) {
    pool[table[b, (len[b] + n) // P], (len[b] + n) % P, e] = x[b,n,e] where n < count[b]
    for l in 0..L {
      kc[l, b, len[b] + n, e] = x[b,n,e] where n < count[b]
      s[b,i,j:C] = (sum(e) x[b,i,e] * kc[l,b,j,e]) * cos(0.1 * (len[b] + i))
      p[b,i,j] = softmax(j where j <= len[b] + i) s[b,i,j]
      x[b,i,e] = x[b,i,e] + sum(j) p[b,i,j] * kc[l,b,j,e]
    }
    t[b,i,j:K*P] = sum(e) x[b,i,e] * pool[table[b, j // P], j % P, e]
    r[b,i,j] = softmax(j where j <= len[b] + i) t[b,i,j]
    o[b,i,e] = sum(j) r[b,i,j] * pool[table[b, j // P], j % P, e]
    len[b] = len[b] + count[b]
    calls = calls + 1
    return y[b,i,e] = o[b,i,e] + memory[b,e]
  }
}"""
m = heed.compile(CACHE, backend="reference")
encode, forward = m["encode"], m["forward"]
table = rng.permutation(12).reshape(B, 6).astype(np.int32)
dims = dict(B=B, C=C, E=E, R=12)
open_, x, memory = lambda: m.state(**dims), uniform(B, C, E), uniform(B, E)
rejected = 50 * uniform(B, 6, E)


def call(part, count, state):
    return forward(part, table, np.array(count, np.int32), state=state).copy()


plain, drafted = open_(), open_()
for state in plain, drafted:
    encode(memory, state=state)
    call(x[:, :7], [7, 5], state)
kept = drafted["kc"]
call(rejected, [6, 4], drafted)
expect(drafted["len"].tolist() == [13, 9] and not np.array_equal(kept, drafted["kc"]), "the draft was run")
# One token of the draft of the second row is accepted: it goes on from there, the first row from where it was.
call(rejected[:, :1], [0, 1], plain)
drafted.trim("len", [7, 6])
expect(drafted["len"].tolist() == [7, 6], f"{drafted['len']}")
for a, z in (7, 8), (8, 12), (12, 13):
    expect(np.array_equal(call(x[:, a:z], [z - a] * B, plain), call(x[:, a:z], [z - a] * B, drafted)), f"tokens {a} to {z} after a draft that was rejected")
# One number for all; to nothing: as a new state.
drafted.trim("len", 0)
expect(drafted["len"].tolist() == [0, 0], f"{drafted['len']}")
fresh = open_()
encode(memory, state=fresh)
new, old = call(x, [C, 9], fresh), call(x, [C, 9], drafted)  # behind a row's count its elements mean nothing
expect(np.array_equal(new[0], old[0]) and np.array_equal(new[1, :9], old[1, :9]), "trimmed to nothing")

# What is no less, or no count, is refused, and nothing has changed.
before = {name: drafted[name] for name in drafted.names}
for values, kind, text in (([C, 10], heed.RangeError, "element 1 is 9 and cannot become 10: expected 0 <= value <= 9"), ([-1, 3], heed.RangeError, "cannot become -1"),
                           (25, heed.RangeError, "element 0 is 24 and cannot become 25"), ([1], heed.ShapeError, "expected as many values as it has"),
                           ([[1, 2]], heed.ShapeError, "expected as many"), ([1.0, 2.0], heed.ElementTypeError, "expected integers")):
    fails(kind, text, lambda: drafted.trim("len", values), f"trim to {values}")
fails(heed.RunError, "the state 'calls' is no count of positions", lambda: drafted.trim("calls", 0), "calls")
fails(heed.RunError, "the state 'kc' is no count of positions", lambda: drafted.trim("kc", 0), "kc")
fails(heed.RunError, "the model has no state 'length'", lambda: drafted.trim("length", 0), "length")
expect(all(np.array_equal(before[name], drafted[name]) for name in before), "a trim that was refused has changed a state")

# Models with something that does not come back. In each the same cache, and one line more.
MORE = """model more(; L = 2) {{
  state kc: f32[B, C, E], {0}, len: i32[B]
  entry forward(x: f32[B, N, E], slot: i32[B]) {{
    kc[b, {2}, e] = x[b,n,e]
    t[b,e] = sum(c:C where c < len[b] + N) kc[b,c,e]
    {1}
    len[b] = len[b] + N
    return y[b,e] = t[b,e]
  }}
}}"""
for name, declared, lines, at, text in (
        ("whole", "h: f32[B, E]", "t[b,e] = t[b,e] + h[b,e]; h[b,e] = t[b,e] / 2", "len[b] + n", "the state 'h' is recurrent"),
        ("shift", "last: f32[B, E]", "t[b,e] = t[b,e] + last[b,e]; last[b,e] = x[b, N - 1, e]", "len[b] + n", "the state 'last' is recurrent"),
        ("layers", "h: f32[L, B, E]", "for l in 0..L { t[b,e] = t[b,e] + h[l,b,e]; h[l,b,e] = t[b,e] / 2 }", "len[b] + n", "the state 'h' is recurrent"),
        ("integer", "last: i32[B]", "t[b,e] = t[b,e] * last[b]; last[b] = slot[b]", "len[b] + n", "the state 'last' is recurrent"),
        ("slots", "h: f32[C, B, E]", "t[b,e] = t[b,e] + h[0,b,e]; h[slot[b],b,e] = t[b,e]", "len[b] + n", "the state 'h' is recurrent"),
        ("ring", "calls: i32", "calls = calls + 1", "(len[b] + n) % C", "the state 'kc' is a ring")):
    one = heed.compile(MORE.format(declared, lines.replace("; ", "\n    "), at), backend="reference")
    state = one.state(B=B, C=C, E=E)
    one(x[:, :3], np.zeros(B, np.int32), state=state)
    fails(heed.RunError, text, lambda: state.trim("len", [2, 2]), name)
    fails(heed.RunError, "use heed_state_copy", lambda: state.trim("len", [2, 2]), name)
    expect(state["len"].tolist() == [3, 3], f"{name}: {state['len']}")
# The same cache alone comes back.
one = heed.compile(MORE.format("calls: i32", "calls = calls + 1", "len[b] + n"), backend="reference")
state, fresh = one.state(B=B, C=C, E=E), one.state(B=B, C=C, E=E)
slot = np.zeros(B, np.int32)
one(x[:, :9], slot, state=state)
state.trim("len", 2)
one(x[:, :2], slot, state=fresh)
expect(np.array_equal(one(x[:, 5:8], slot, state=state), one(x[:, 5:8], slot, state=fresh)), "the cache alone")
finish()
