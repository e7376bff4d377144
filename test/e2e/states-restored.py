# RUN: env PYTHONPATH=%heed_src/python:%heed_src/test/support %python %s %heed_bin/heedc
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""A call that fails in the middle leaves its state as it was: memory is refused at every point in turn, in a model whose layers update caches and that assigns
other states; a deadline that has passed; then the same call succeeds."""
import ctypes as C
import os
import sys
import tempfile

import numpy as np

os.environ["HEEDC"] = sys.argv[1]
import heed
from heed import abi
from heed.state import CallOptions
from runs import expect, finish

SOURCE = """model layers(; L = 4) {
  state kc: f32[L, B, C, E], len: i32[B], total: f32[B, E]
  entry forward(x: f32[B, N, E]) {
    for l in 0..L {
      kc[l, b, len[b] + n, e] = x[b, n, e] * (l + 1)
      s[b, i, j:C] = sum(e) x[b, i, e] * kc[l, b, j, e]
      p[b, i, j] = softmax(j where j <= len[b] + i) s[b, i, j]
      x[b, i, e] = x[b, i, e] + sum(j) p[b, i, j] * kc[l, b, j, e]
    }
    total[b, e] = total[b, e] + sum(n) x[b, n, e]
    len[b] = len[b] + N
    return x
  }
}"""
Allocate = C.CFUNCTYPE(C.c_void_p, C.c_void_p, C.c_size_t, C.c_size_t)
Release = C.CFUNCTYPE(None, C.c_void_p, C.c_void_p, C.c_size_t)


class Allocator(abi.Sized):
    _fields_ = [("size", C.c_size_t), ("allocate", Allocate), ("release", Release), ("user", C.c_void_p)]


libc = C.CDLL(None)
libc.aligned_alloc.restype, libc.aligned_alloc.argtypes = C.c_void_p, [C.c_size_t, C.c_size_t]
libc.free.argtypes = [C.c_void_p]
left = -1  # allocations that succeed; -1: all


def allocate(user, alignment, size):
    global left
    if left == 0:
        return None
    left -= left > 0
    return libc.aligned_alloc(alignment, -(-size // alignment) * alignment)


B, N, E, LIMIT = 2, 5, 8, 20
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "layers.heed")
    with open(path, "w") as file:
        file.write(SOURCE)
    library = heed.compile(path)._library
c = library.c
allocator = Allocator(allocate=Allocate(allocate), release=Release(lambda user, memory, size: libc.free(memory)))
options = abi.Options(threads=2, allocator=C.cast(C.pointer(allocator), C.c_void_p))
model, state = C.c_void_p(), C.c_void_p()
assert c.heed_open_version(abi.ABI_VERSION, library.desc, C.byref(options), C.byref(model)) == 0
dims = (abi.Dim * 3)(abi.Dim(b"B", B), abi.Dim(b"C", LIMIT), abi.Dim(b"E", E))
assert c.heed_state_open(model, dims, 3, C.byref(state)) == 0
rng = np.random.default_rng(1703)


def buffer_of(array):
    kind = abi.F32 if array.dtype == np.float32 else abi.I32
    buffer = abi.Buffer(data=array.ctypes.data, type=kind, rank=array.ndim)
    buffer.shape[: array.ndim] = array.shape
    return buffer


def held():
    arrays = {b"kc": np.empty((4, B, LIMIT, E), np.float32), b"len": np.empty(B, np.int32), b"total": np.empty((B, E), np.float32)}
    for name, array in arrays.items():
        assert c.heed_state_get(state, name, C.byref(buffer_of(array))) == 0
    return arrays


def run(handle, x, out, **more):
    call = CallOptions(state=state, **more)
    return c.heed_run(handle, b"forward", C.byref(buffer_of(x)), 1, C.byref(buffer_of(out)), 1, C.byref(call))


for turn in range(3):
    x = rng.uniform(-1, 1, (B, N, E)).astype(np.float32)
    out, before, refused = np.empty_like(x), held(), 0
    for allowed in range(200):
        left = -1
        handle = C.c_void_p()
        assert c.heed_open_shared(model, 2, C.byref(handle)) == 0
        left = allowed
        status = run(handle, x, out)
        left = -1
        if status == 0:
            c.heed_close(handle)
            break
        refused += 1
        expect(c.heed_status_name(status) == b"memory", f"{allowed} allocations: {c.heed_status_name(status)}, {c.heed_last_error(handle)}")
        after = held()
        expect(all(np.array_equal(before[name], after[name]) for name in before), f"turn {turn}, {allowed} allocations: the state has changed")
        status = run(handle, x, out, deadline=1)
        expect(c.heed_status_name(status) == b"deadline", c.heed_status_name(status))
        after = held()
        expect(all(np.array_equal(before[name], after[name]) for name in before), f"turn {turn}: the state has changed after a deadline")
        c.heed_close(handle)
    after = held()
    expect(after[b"len"].tolist() == [(turn + 1) * N] * B and not np.array_equal(before[b"total"], after[b"total"]), f"turn {turn}: {after[b'len']}")
    expect(refused > 2, f"only {refused} points where memory was refused")
    for l in range(4):
        written = after[b"kc"][l, :, turn * N : (turn + 1) * N]
        expect(written.any() and not after[b"kc"][l, :, (turn + 1) * N :].any(), f"turn {turn}, layer {l}")
c.heed_state_close(state)
c.heed_close(model)
finish()
