# RUN: %python %s
# The library's runtime would want the sanitizer's, which is not in Python.
# UNSUPPORTED: asan
"""Models called from Python: arrays of all kinds in and out, signatures, several results, threads and processes."""
import ctypes
import inspect
import multiprocessing
import pydoc
import sys
import threading

import numpy as np

import heed
from runs import expect, finish

ATTENTION = """
# Attention with a soft cap.
# Second line.
model capped(q: f32[B, H, N, E], k: f32[B, H, M, E], v: f32[B, H, M, F], global: bool[M]; cap: f32 = 50.0, shift: i32) {
  s[b,h,i,j] = sum(e) q[b,h,i,e] * k[b,h,j,e] / sqrt(E)
  s[b,h,i,j] = cap * tanh(s[b,h,i,j] / cap)
  p[b,h,i,j] = softmax(j where j <= i + shift or global[j]) s[b,h,i,j]
  return o[b,h,i,f] = sum(j) p[b,h,i,j] * v[b,h,j,f]
}
"""
random = np.random.default_rng(1)


def drawn(*shape):
    return random.standard_normal(shape).astype(np.float32)


def attention(q, k, v, seen, cap=50.0, shift=0):
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    s = cap * np.tanh(np.einsum("bhie,bhje->bhij", q, k) / np.sqrt(q.shape[-1]) / cap)
    i, j = np.indices(s.shape[-2:])
    s = np.where((j <= i + shift) | seen[None, :], s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("bhij,bhjf->bhif", p / p.sum(-1, keepdims=True), v)


def close(got, want, what, tolerance=1e-5):
    expect(got.shape == want.shape and np.abs(got - want).max(initial=0) <= tolerance * max(np.abs(want).max(initial=0), 1),
           f"{what}: {got.shape} {np.abs(got - want).max(initial=0) if got.shape == want.shape else want.shape}")


def fails(kind, text, function, *args, **inputs):
    try:
        function(*args, **inputs)
    except kind as error:
        return expect(text in str(error), f"expected {text!r}, found {error!s}")
    except Exception as error:
        return expect(False, f"expected {kind.__name__} with {text!r}, found {error!r}")
    expect(False, f"expected {kind.__name__} with {text!r}, found no error")


m = heed.compile(ATTENTION)
q, k, v, seen = drawn(2, 3, 7, 5), drawn(2, 3, 11, 5), drawn(2, 3, 11, 4), random.random(11) < 0.2
want = attention(q, k, v, seen, shift=4)

# By name, by position, with a Python keyword as a name; scalars as Python's numbers or NumPy's.
close(m(q=q, k=k, v=v, global_=seen, shift=4), want, "by name")
close(m(q, k, v, seen, shift=4), want, "by position")
close(m(q, k, v, shift=np.int64(4), **{"global": seen}), want, "the model's own name")
close(m(q, k, v, seen, shift=4, cap=0.5), attention(q, k, v, seen, 0.5, 4), "a scalar")
close(m(q.tolist(), k, v, [bool(x) for x in seen], shift=4), want, "lists")

# The signature and the documentation come from the model.
signature = inspect.signature(m)
expect(str(signature) == "(q: f32[B, H, N, E], k: f32[B, H, M, E], v: f32[B, H, M, F], global_: bool[M], *, cap: f32 = 50.0, "
       "shift: i32, out=None) -> f32[B, H, N, F]", str(signature))
text = pydoc.render_doc(m, renderer=pydoc.plaintext)
for part in ("Attention with a soft cap.\n", "Second line.", "q: f32[B, H, N, E]", "cap: f32 = 50.0", "o: f32[B, H, N, F]", "__call__(self"):
    expect(part in text, f"help: no {part!r} in {text[:600]}")
expect(m.name == "capped" and m.entries == ["capped"] and [t.name for t in m.inputs] == ["q", "k", "v", "global", "cap", "shift"]
       and m.outputs[0].extents == ("B", "H", "N", "F"), "what a model says of itself")
close(m["capped"](q, k, v, seen, shift=4), want, "an entry by name")
fails(KeyError, "no entry 'x', expected one of capped", lambda: m["x"])

# Results into arrays that were given; strides in and out, also negative ones and none.
out = np.full(want.shape, np.nan, np.float32)
expect(m(q, k, v, seen, shift=4, out=out) is out, "the array that was given is the result")
close(out, want, "out=")
wide = np.full((2, 7, 3, 8), np.nan, np.float32)
view = wide.transpose(0, 2, 1, 3)[..., ::2]
m(q, k, v, seen, shift=4, out={"o": view})
close(view, want, "a strided result")
expect(np.isnan(wide[..., 1::2]).all(), "what lies between the elements of a result stays")
turned = np.ascontiguousarray(q.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
close(m(turned, np.asfortranarray(k), v[:, :, ::-1][:, :, ::-1], seen, shift=4), want, "strided inputs")
row = drawn(1, 1, 1, 5)
close(m(np.broadcast_to(row, q.shape), k, v, seen, shift=4), attention(np.broadcast_to(row, q.shape), k, v, seen, shift=4), "strides of 0")
odd = np.empty(q.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(q.shape)
odd[...] = q
close(m(odd, k, v, seen, shift=4), want, "an unaligned array")
close(m(q.astype(">f4"), k, v, seen, shift=4), want, "another byte order")
expect(m(q[:0], k[:0], v[:0], seen, shift=4).shape == (0, 3, 7, 4), "a batch of nothing")


# DLPack: of NumPy itself, and of a class that has nothing else.
class Tensor:
    def __init__(self, array, device=1, type=None):
        self.array, self.device, self.type, self.used = array, device, type, 0

    def __dlpack_device__(self):
        return (self.device, 0)

    def __dlpack__(self, stream=None):
        self.used += 1
        capsule = self.array.__dlpack__()
        if self.type:  # NumPy has no bf16
            get = ctypes.pythonapi.PyCapsule_GetPointer
            get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            ctypes.c_uint8.from_address(get(capsule, b"dltensor") + 20).value = self.type
        return capsule


tensor = Tensor(turned)
references = sys.getrefcount(turned)
bound = m.bind(tensor, k, v, Tensor(seen), shift=4)
close(bound(), want, "DLPack")
turned[...] *= 2
close(bound(), attention(2 * q, k, v, seen, shift=4), "DLPack does not copy")
turned[...] /= 2
expect(tensor.used == 1 and sys.getrefcount(turned) > references, "a bound tensor is kept")
del bound
expect(sys.getrefcount(turned) == references, "a tensor is given back")
m(q, k, v, seen, shift=4, out=Tensor(out))
close(out, want, "a result by DLPack")
fails(heed.RunError, "input 'q' lies on a device of kind 2, expected the CPU", m, Tensor(q, device=2), k, v, seen, shift=4)
fails(heed.ElementTypeError, "input 'q' is f64, expected f32", m, Tensor(q.astype("f8")), k, v, seen, shift=4)
fails(heed.ElementTypeError, "DLPack's kind 5 with 64 bits", m, Tensor(np.zeros((1, 1, 1, 1), np.complex64)), k, v, seen, shift=4)

# Mistakes.
fails(TypeError, "capped() needs k, shift", m, q, v=v, global_=seen)
fails(TypeError, "has no input 'w', expected q, k, v, global_, cap, shift", m, q, k, v, seen, shift=4, w=1)
fails(TypeError, "got input 'q' twice", m, q, k, v, seen, shift=4, q=q)
fails(TypeError, "takes 4 arrays by position, 5 were given", m, q, k, v, seen, 1, shift=4)
fails(heed.ShapeError, "extent of 'k' (axis 3) is 6, expected E = 5", m, q, drawn(2, 3, 11, 6), v, seen, shift=4)
fails(ValueError, "q", m, q[0], k, v, seen, shift=4)
fails(heed.ElementTypeError, "input 'q' is float64, expected f32; .astype(numpy.float32) rounds it", m, q.astype("f8"), k, v, seen, shift=4)
fails(TypeError, "input 'global' is int64, expected bool", m, q, k, v, seen.astype("i8"), shift=4)
fails(TypeError, "input 'shift' is float64, expected i32", m, q, k, v, seen, shift=np.float64(4))
fails(TypeError, "expected i32", m, q, k, v, seen, shift=4.5)
fails(TypeError, "expected an array of f32, found dict", m, {}, k, v, seen, shift=4)
fails(heed.RangeError, "input 'shift' holds 4294967296, which is no i32", m, q, k, v, seen, shift=1 << 32)
fails(heed.ShapeError, "result 'o' has shape [2, 3, 7, 5], expected [2, 3, 7, 4]", m, q, k, v, seen, shift=4, out=np.empty_like(q))
fails(heed.ElementTypeError, "result 'o' is float64, expected f32[2, 3, 7, 4]", m, q, k, v, seen, shift=4, out=out.astype("f8"))
frozen = out.copy()
frozen.flags.writeable = False
fails(heed.RunError, "result 'o' cannot be written to", m, q, k, v, seen, shift=4, out=frozen)
fails(TypeError, "has no result 'p', expected o", m, q, k, v, seen, shift=4, out={"p": out})
fails(TypeError, "has 1 results, 2 arrays were given", m, q, k, v, seen, shift=4, out=[out, out])
fails(heed.RunError, "overlap", m, q, k, v, seen, shift=4, out=q[:, :, :, :4])

# Several results, integers and half precision.
several = heed.compile("""
model several(x: f16[N], ids: i32[M]; table: i64[N]) {
  return y[n] = 2 * x[n], at[m] = table[ids[m]], total = sum(n) f32(x[n])
}
""")
x, ids, table = np.arange(5, dtype="f2"), np.array([4, 0, 4]), np.arange(5) * 10
results = several(x, ids, table)
expect(type(results).__name__ == "Results" and results._fields == ("y", "at", "total"), f"results: {results}")
expect(results.y.dtype == np.float16 and (results.y == 2 * x).all() and (results.at == [40, 0, 40]).all() and results.total == 10, str(results))
y = np.empty(5, "f2")
expect(several(x, ids.astype("u1"), table.astype("i2"), out=(y, None, None)).y is y and (y == 2 * x).all(), "integers of another width")
fails(heed.RangeError, "ids", several, x, np.array([5]), table)
fails(TypeError, "has 3 results: expected a dict or a sequence as out", several, x, ids, table, out=y)

# bf16 without a package for it: its bits, or DLPack.
half = heed.compile("model half(x: bf16[N]) { return y[n] = bf16(f32(x[n]) * 3) }")
bits = np.array([0x3F80, 0x4000, 0xC040], np.uint16)  # 1, 2, -3
expected = np.array([0x4040, 0x40C0, 0xC110], np.uint16)
try:
    import ml_dtypes
    expect((half(bits).astype(np.float32) == [3, 6, -9]).all() and half(bits.view(ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16, "bf16")
except ImportError:
    fails(TypeError, "result 'y' is bf16, which NumPy has not: install ml_dtypes", half, bits)
given = np.zeros(3, np.uint16)
expect((half(bits, out=given) == expected).all(), f"bf16 as bits: {given}")
given[...] = 0
half(Tensor(bits, type=4), out=Tensor(given, type=4))
expect((given == expected).all(), f"bf16 by DLPack: {given}")
fails(TypeError, "input 'x' is float32, expected bf16", half, np.zeros(3, "f4"))

# Several threads call one model; the arrays of a bound call are read each time.
problems = []


def many(seed):
    own = np.random.default_rng(seed)
    for _ in range(20):
        a = [own.standard_normal(s.shape).astype(np.float32) for s in (q, k, v)]
        got = m(*a, seen, shift=4)
        if np.abs(got - attention(*a, seen, shift=4)).max() > 1e-5:
            problems.append(seed)


workers = [threading.Thread(target=many, args=(seed,)) for seed in range(6)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
expect(not problems, f"threads: {problems}")
handles = m._handles()
expect(len(handles.opened) <= 6, f"one handle for each call at a time: {len(handles.opened)}")
taken = [handles.take() for _ in range(6)]  # as calls have them that go on
expect(np.abs(m(q, k, v, seen, shift=4) - attention(q, k, v, seen, shift=4)).max() <= 1e-5, "a call beside others")
expect(len(handles.opened) == 7, f"a handle of its own for each call: {len(handles.opened)}")
handles.free.extend(taken)

# A forked process opens its own.
def child(pipe):
    pipe.send(float(np.abs(m(q, k, v, seen, shift=4) - want).max()))


here, there = multiprocessing.Pipe()
process = multiprocessing.get_context("fork").Process(target=child, args=(there,))
process.start()
expect(here.poll(120) and here.recv() < 1e-5, "a forked process")
process.join(120)
expect(process.exitcode == 0, f"a forked process ended with {process.exitcode}")
finish()
