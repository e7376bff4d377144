# RUN: env PYTHONPATH=%heed_src/python:%heed_src/test/support %python %s %heed_bin/heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""What profiles count of masks that data bound: operations are those of live pairs, bytes of keys and values those that some query sees. Compared with
what NumPy and a reader find: a step, a prefill, rows of several lengths, documents, grouped heads; and a table that is looked up more often than it has rows."""
import ctypes as C
import os
import sys

import numpy as np

os.environ["HEEDC"] = sys.argv[1]
import heed
from heed import abi
from runs import expect, finish

rng = np.random.default_rng(17)
uniform = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)


def model(source):
    compiled = heed.compile(source)
    compiled._current = compiled._open(profile=True)
    return compiled


def counted(compiled, call, kind):
    """Calls, operations and bytes of the kernels of `kind` in one call."""
    c, handle = compiled._library.c, compiled._current.opened[0]
    c.heed_profile_reset(handle)
    call()
    kernels = (abi.KernelProfile * c.heed_profile(handle, None, 0))()
    kernels[0].size = C.sizeof(abi.KernelProfile)
    c.heed_profile(handle, kernels, len(kernels))
    used = [k for k in kernels if kind in k.kernel.decode() and "mask" not in k.kernel.decode() and k.calls]
    return tuple(sum(getattr(k, part) for k in used) for part in ("calls", "flops", "bytes"))


def check(what, found, calls, flops, nbytes):
    expect(found == (calls, flops, nbytes), f"{what}: expected {calls} calls, {flops} operations, {nbytes} bytes, found {found}")


# A pair: a product of E, the scale, three of the softmax, a product of E.
E, pair = 16, 2 * 16 + 1 + 3 + 2 * 16
DECODER = """model decoder(; L = 2, H = 4) {
  state kc, vc: f32[L, B, 2, C, 16], len: i32[B]
  entry forward(x: f32[B, N, H, 16]) {
    for l in 0..L {
      kc[l,b,g:2,len[b] + n,e] = x[b,n,g,e]
      vc[l,b,g:2,len[b] + n,e] = x[b,n,2 + g,e]
      s[b,h,i,j:C] = (sum(e) x[b,i,h,e] * kc[l,b,h / 2,j,e]) * 0.25
      p[b,h,i,j] = softmax(j where j <= len[b] + i) s[b,h,i,j]
      x[b,i,h,e] = sum(j) p[b,h,i,j] * vc[l,b,h / 2,j,e]
    }
    len[b] = len[b] + N
    return x
  }
}"""
decoder = model(DECODER)
B, H, G, capacity = 3, 4, 2, 512
state = decoder.state(B=B, C=capacity)


def decode(what, n, lengths, pairs, keys):
    """`pairs` and `keys` are those of all rows, of one head and one layer."""
    state["len"] = np.array(lengths, np.int32)
    x = uniform(B, n, H, E)
    # Queries and results, keys and values, the lengths: of each layer.
    nbytes = 2 * 4 * x.size + 2 * 4 * keys * G * E + 4 * B
    check(what, counted(decoder, lambda: decoder(x, state=state), "attention"), 2, 2 * pairs * H * pair, 2 * nbytes)


decode("a step", 1, [9, 9, 9], 3 * 10, 3 * 10)
decode("a step of rows of several lengths", 1, [0, 6, 400], 1 + 7 + 401, 1 + 7 + 401)
decode("a prefill", 64, [0, 0, 0], 3 * 64 * 65 // 2, 3 * 64)
decode("a part of a prompt, of rows of several lengths", 3, [0, 5, 100], (1 + 2 + 3) + (6 + 7 + 8) + (101 + 102 + 103), 3 + 8 + 103)

# Masks that data bound, with a batch, one head.
HEADS = "model {0}({1}, q: f32[B, N, 16], k, v: f32[B, M, 16]) {{\n  s[b,i,j] = (sum(e) q[b,i,e] * k[b,j,e]) * 0.25\n" \
        "  p[b,i,j] = softmax(j where {2}) s[b,i,j]\n  return o[b,i,e] = sum(j) p[b,i,j] * v[b,j,e]\n}}"
N = 96  # whole tiles: one call computes them
i, j = np.arange(N)[:, None], np.arange(N)
lengths, first = np.array([1, 96, 33], np.int32), np.array([0, 20, 95], np.int32)
documents = np.sort(rng.integers(0, 5, (B, N)), axis=1).astype(np.int32)
marks = rng.random((N, N)) < 0.3
MASKS = {
    "lengths": ("lengths: i32[B]", "j < lengths[b]", (lengths,), np.broadcast_to(j < lengths[:, None, None], (B, N, N))),
    "spans": ("first, lengths: i32[B]", "j >= first[b] and j < lengths[b] and j <= i", (first, lengths),
              (j >= first[:, None, None]) & (j < lengths[:, None, None]) & (j <= i)),
    "documents": ("doc: i32[B, N]", "doc[b,i] == doc[b,j] and abs(i - j) < 9", (documents,),
                  (documents[:, :, None] == documents[:, None, :]) & (abs(i - j) < 9)),
    "marks": ("marks: bool[N, M]", "marks[i,j]", (marks,), np.broadcast_to(marks, (B, N, N))),
}
for name, (inputs, where, arrays, live) in MASKS.items():
    compiled = model(HEADS.format(name, inputs, where))
    q, k, v = uniform(B, N, E), uniform(B, N, E), uniform(B, N, E)
    keys = live.any(axis=1).sum()
    nbytes = 2 * q.nbytes + 2 * 4 * int(keys) * E + sum(a.nbytes for a in arrays)
    check(name, counted(compiled, lambda: compiled(*arrays, q, k, v), "attention"), 1, int(live.sum()) * pair, nbytes)

# Looked up more often than it has rows: it is read once. Less often: what is read.
lookup = model("model lookup(ids: i32[N], table: f32[V, 16]) { return y[n, d] = table[ids[n], d] * 2 }")
for rows, table in (100, 7), (5, 300):
    ids = rng.integers(0, table, rows).astype(np.int32)
    check(f"{rows} of {table} rows", counted(lookup, lambda: lookup(ids, uniform(table, E)), "lookup"), 1, rows * E,
          ids.nbytes + 4 * E * min(rows, table) + 4 * E * rows)
# At places that follow from a number of the call; another kernel writes these, to be checked.
shifted = model("model shifted(x: f32[N, 16], table: f32[V, 16]; offset: i32) { return y[n, d] = x[n, d] + table[offset + n, d] }")
x = uniform(5, E)
check("5 rows behind the third", counted(shifted, lambda: shifted(x, uniform(300, E), offset=3), "shifted"), 2, x.size, 3 * x.nbytes + 8 * 5)
finish()
