# RUN: %python %s %heed_bin %heed_src %cc %t
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
"""Inputs and results that lie on the device, streams and contexts of the caller's, and how often a call waits, on a driver of CUDA's that is a stub here:
what is dense is not copied, the numbers are those of arrays of the host, and what is not the handle's device is refused with words."""
import ctypes as C
import os
import pathlib
import sys
import threading

import numpy as np

import cuda_stub
from capi import Buffer, Library, buffers
from cuda_memory import Driver, There
from device_attention import draw, oracle
from heed import abi
from heed.state import CallOptions
from runs import expect, finish, run

heedc, source, cc = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2]), sys.argv[3]
folder = pathlib.Path(sys.argv[4])
cuda_stub.start(cc, source, folder)
rng = np.random.default_rng(5)
INVALID, SHAPE, DEVICE = 1, 2, 15


def compiled(name, text, target="cuda"):
    (folder / f"{name}.heed").write_text(text)
    done = run(heedc, folder / f"{name}.heed", f"--target={target}", "--emit=shared", "-o", folder / f"lib{name}.so")
    expect(done.returncode == 0, done.stderr)
    return folder / f"lib{name}.so"


def array_of(*given):
    return (abi.Buffer * len(given))(*given)


def near(got, want, what):
    expect(np.abs(got - want).max(initial=0) <= 1e-5 * np.abs(want).max(initial=1e-30), f"{what}: the numbers")


attention = compiled("attention", (source / "models/core/causal-attention.heed").read_text(), "x86-64,cuda")
driver = Driver()
model = Library(attention, "attention", target=b"cuda")
expect(model.status == 0, model.error())
arrays = draw(1, 2, 2, 40, 40, 16, 16)
want = oracle(**arrays)
there = {name: There(driver, array) for name, array in arrays.items()}
nothing = np.full(want.shape, np.nan, np.float32)


def run_there(out, call=None, **inputs):
    return model.run(array_of(*(inputs.get(name, one).buffer() for name, one in there.items())), array_of(out.buffer()), call)


# All of it on the device: nothing is copied.
out = There(driver, nothing)
before = driver.copied()
expect(run_there(out) == 0, model.error())
expect(driver.copied() == before, f"{driver.copied() - before} bytes are copied")
near(out.get(), want, "all on the device")
out.free()
# Either side alone.
result = nothing.copy()
before = driver.copied()
expect(model.run(array_of(*(one.buffer() for one in there.values())), buffers(result)) == 0, model.error())
expect(driver.copied() - before == result.nbytes, "inputs on the device")
near(result, want, "inputs on the device")
out = There(driver, nothing)
before = driver.copied()
expect(model.run(buffers(*arrays.values()), array_of(out.buffer())) == 0, model.error())
expect(driver.copied() - before == sum(a.nbytes for a in arrays.values()), "the result on the device")
near(out.get(), want, "the result on the device")
out.free()
# One of three, managed, and pinned memory, which is the host's.
result = nothing.copy()
host = buffers(*arrays.values())
pinned = abi.Buffer.from_buffer_copy(host[0])
pinned.deviceType, pinned.deviceNumber = abi.DEVICE_CUDA_HOST, 3
managed = There(driver, arrays["k"], kind=abi.DEVICE_CUDA_MANAGED)
expect(model.run(array_of(pinned, managed.buffer(), host[2]), buffers(result)) == 0, model.error())
near(result, want, "managed and pinned")
managed.free()

# Other strides: a transposed one element by element, heads row by row; what stands between rows of a result stays.
heads = {name: array.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3) for name, array in arrays.items()}
columns = {name: array.transpose(0, 1, 3, 2).copy().transpose(0, 1, 3, 2) for name, array in arrays.items()}
wide = np.full((1, 2, 40, 24), 7, np.float32)
for what, views in (("heads", heads), ("columns", columns)):
    strided = {name: There(driver, array, strided=True) for name, array in views.items()}
    out = There(driver, wide[..., 4:20], strided=True)
    before = driver.copied()
    expect(run_there(out, **strided) == 0, f"{what}: {model.error()}")
    expect(driver.copied() == before, f"{what}: copies to or from the host")
    got = out.get()
    near(got[..., 4:20], want, what)
    expect((got[..., :4] == 7).all() and (got[..., 20:] == 7).all(), f"{what}: what stands between rows")
    bytes_of = C.c_int64()
    for one in (strided, there):
        expect(model.library.heed_plan_memory(model.handle, None, array_of(*(one[name].buffer() for name in "qkv")), C.c_size_t(3), C.byref(bytes_of)) == 0, model.error())
    for one in (*strided.values(), out):
        one.free()
# Backwards: the first element is not the first in memory.
mirrored = np.ascontiguousarray(arrays["q"][..., ::-1])[..., ::-1]
flipped = There(driver, mirrored, strided=True)
out = There(driver, nothing)
expect(run_there(out, q=flipped) == 0, model.error())
near(out.get(), want, "backwards")
flipped.free()
# No element.
empty = {name: There(driver, array) for name, array in draw(1, 2, 2, 0, 4, 8, 8).items()}
expect(model.run(array_of(*(one.buffer() for one in empty.values())), array_of(Buffer(0, abi.F32, (1, 2, 0, 8)))) == 0, model.error())
for one in empty.values():
    one.free()

# What is refused.
for words, status, change in (("input 'q': expected memory of the CPU (device type 1) or of the model's CUDA device 'stub 0', found device type 2, number 1", DEVICE, {"deviceNumber": 1}),
                              ("found device type 4, number 0", DEVICE, {"deviceType": 4}),
                              ("'q' is not aligned to its elements of 4 bytes", INVALID, {"byteOffset": 2}),
                              ("output 'o' overlaps the memory of 'q'", INVALID, {"data": out.memory})):
    q = there["q"].buffer()
    for field, value in change.items():
        setattr(q, field, value)
    expect(model.run(array_of(q, host[1], host[2]), array_of(out.buffer())) == status and words in model.error(), f"{words}: {model.error()}")
plain = Library(attention, "attention", target=b"x86-64")
expect(plain.run(array_of(there["q"].buffer(), host[1], host[2]), buffers(result)) == DEVICE and
       "expected memory of the CPU (device type 1), found device type 2, number 0" in plain.error(), plain.error())
expect(plain.run(host, buffers(result), CallOptions(stream=1)) == DEVICE and "call.stream: expected null" in plain.error(), plain.error())
plain.close()

# Whole numbers that the host looks at, checks and a number of the model.
lookup = Library(compiled("lookup", "model lookup(id: i32[B, N], t: f32[V, D]; f: f32 = 2) { return x[b,j,d] = f * t[id[b,j], d] }"), "lookup")
expect(lookup.status == 0, lookup.error())
ids, table = rng.integers(0, 9, (3, 5)).astype(np.int32), rng.uniform(-1, 1, (9, 33)).astype(np.float32)
factor = np.array(3, np.float32)
inputs = [There(driver, ids), There(driver, table), There(driver, factor)]
x = There(driver, np.zeros((3, 5, 33), np.float32))
scalar = Buffer(factor.ctypes.data, abi.F32)
before = driver.copied()
expect(lookup.run(array_of(inputs[0].buffer(), inputs[1].buffer(), scalar), array_of(x.buffer())) == 0, lookup.error())
near(x.get(), 3 * table[ids], "lookup")
expect(driver.copied() - before == ids.nbytes, "positions are looked at, and nothing else")
expect(lookup.run(array_of(*(one.buffer() for one in inputs)), array_of(x.buffer())) == DEVICE and
       "input 'f' is a number: expected it on the CPU (device type 1), found device type 2" in lookup.error(), lookup.error())
C.cast(inputs[0].memory, C.POINTER(C.c_int32))[4] = 9
expect(lookup.run(array_of(inputs[0].buffer(), inputs[1].buffer(), scalar), array_of(x.buffer())) == 4, f"an index that is too large: {lookup.error()}")
lookup.close()
for one in (*inputs, x):
    one.free()

# A stream of the caller's has all launches of its calls, and no others.
mine = driver.stream()
launches, others = driver.launches(mine), driver.launches()
expect(run_there(out, CallOptions(stream=mine)) == 0, model.error())
near(out.get(), want, "a stream")
ours = driver.launches(mine) - launches
expect(ours > 0 and driver.launches() - others == ours, "launches on the stream")
expect(run_there(out) == 0 and driver.launches(mine) == launches + ours, "launches on the model's own")
expect(run_there(out, CallOptions(stream=1)) == 0 and driver.launches(C.c_void_p(1)) == ours, "the default stream")
# After a failure nothing is under way: the stream may be destroyed.
os.environ |= {"FAIL": "cuLaunchKernel", "AT": str(driver.calls("cuLaunchKernel") + 1)}
waits = driver.calls("cuStreamSynchronize")
expect(run_there(out, CallOptions(stream=mine)) == DEVICE and "cuLaunchKernel failed (999" in model.error(), model.error())
expect(driver.calls("cuStreamSynchronize") > waits, "a failed call is waited for")
del os.environ["FAIL"], os.environ["AT"]
driver.destroy(mine)
expect(run_there(out, CallOptions(stream=mine)) == DEVICE and "failed (" in model.error(), "a stream that is none any more")
expect(run_there(out) == 0, model.error())
near(out.get(), want, "after a stream that is none")


# Handles on the same weights, each on a stream of its thread's.
def work(k, results):
    own, other = Driver(), C.c_void_p()
    stream = own.stream()
    model.library.heed_open_shared(model.handle, 0, C.byref(other))
    for n in range(4):
        o = np.full(want.shape, np.nan, np.float32)
        status = model.library.heed_run(other, None, array_of(*(one.buffer() for one in there.values())), C.c_size_t(3), buffers(o), C.c_size_t(1), C.byref(CallOptions(stream=stream)))
        results.append(status == 0 and np.abs(o - want).max() <= 1e-5)
    model.library.heed_close(other)
    own.destroy(stream)
    own.close()


results = []
threads = [threading.Thread(target=work, args=(k, results)) for k in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
expect(results == [True] * 12, f"three streams: {results}")

# Small arrays of the host go through pinned memory: a call waits once, at its end. Without such memory, or of large arrays, once for each.
waits = driver.calls("cuStreamSynchronize")
expect(model.run(host, buffers(result)) == 0, model.error())
expect(driver.calls("cuStreamSynchronize") - waits == 1, f"{driver.calls('cuStreamSynchronize') - waits} waits of a call")
near(result, want, "through pinned memory")
expect(driver.calls("cuMemHostAlloc") == 1, "pinned memory is made once for a device")
os.environ["FAIL"], os.environ["AT"] = "cuMemHostAlloc", str(driver.calls("cuMemHostAlloc") + 1)
without = Library(attention, "attention", target=b"cuda")
waits = driver.calls("cuStreamSynchronize")
expect(without.run(host, buffers(result)) == 0, without.error())
expect(driver.calls("cuStreamSynchronize") - waits == 5, "waits without pinned memory")
near(result, want, "without pinned memory")
expect(without.run(host, buffers(result)) == 0 and driver.calls("cuMemHostAlloc") == int(os.environ["AT"]), "it is asked for once")
without.close()
del os.environ["FAIL"], os.environ["AT"]
# More of them than it holds, and one that is too large for it.
text = ["model many(" + ", ".join(f"x{k}: f32[N]" for k in range(20)) + ") {", *(f"y{k}[n] = 2 * x{k}[n]" for k in range(20)),
        "sum[n] = " + " + ".join(f"x{k}[n]" for k in range(20)), "return sum, " + ", ".join(f"y{k}" for k in range(20)), "}"]
many = Library(compiled("many", "\n".join(text)), "many")
for size in (70000, 300000):
    xs = [rng.integers(-9, 9, size).astype(np.float32) for _ in range(20)]
    ys = [np.empty(size, np.float32) for _ in range(21)]
    expect(many.run(buffers(*xs), buffers(*ys)) == 0, many.error())
    expect(np.array_equal(ys[0], sum(xs)) and all(np.array_equal(y, 2 * x) for x, y in zip(xs, ys[1:])), f"{size}: arrays of several megabytes")
many.close()
model.close()

# A result on the device that the processor computes: it goes there, and nothing comes back.
tables = Library(compiled("tables", """model tables(x: f32[N, E]) {
  a[n: N, e: E] = cos(n * 10000 ^ (-e / E))
  return y[n, e] = x[n, e] * a[n, e], a
}"""), "tables", target=b"cuda")
x = There(driver, rng.uniform(-1, 1, (33, 16)).astype(np.float32))
outs = [There(driver, np.full(x.shape, np.nan, np.float32)) for _ in range(2)]
before = driver.copied()
expect(tables.run(array_of(x.buffer()), array_of(*(out.buffer() for out in outs))) == 0, tables.error())
expect(driver.copied() - before == x.whole.nbytes, f"a table on the device: {driver.copied() - before} bytes are copied")
table = np.cos(np.arange(33)[:, None] * 10000.0 ** (-np.arange(16) / 16))
near(outs[0].get(), x.whole * table, "what is made of a table")
near(outs[1].get(), table, "a table on the device")
tables.close()
for one in (x, *outs):
    one.free()

# A context of the caller's: no other is used.
for one in (*there.values(), out):
    one.free()
driver.close()
driver = Driver(own=True)
retained = driver.calls("cuDevicePrimaryCtxRetain")
model = Library(attention, "attention", target=b"cuda", context=driver.context)
expect(model.status == 0 and driver.calls("cuDevicePrimaryCtxRetain") == retained, model.error())
there = {name: There(driver, array) for name, array in arrays.items()}
out, stream = There(driver, nothing), driver.stream()
expect(run_there(out, CallOptions(stream=stream)) == 0, model.error())
near(out.get(), want, "a context of the caller's")
result = nothing.copy()
expect(model.run(host, buffers(result)) == 0, model.error())
near(result, want, "arrays of the host in a context of the caller's")
model.close()
driver.destroy(stream)
for one in (*there.values(), out):
    one.free()
for function in ("cuCtxPushCurrent", "cuCtxGetDevice"):
    os.environ["FAIL"], os.environ["AT"] = function, str(driver.calls(function) + 1)
    model = Library(attention, "attention", target=b"cuda", context=driver.context)
    expect(model.status == DEVICE and f"options.context: {function} failed (999, CUDA_ERROR_UNKNOWN)" in model.error(), model.error())
    model.close()
del os.environ["FAIL"], os.environ["AT"]
driver.close()
finish()
