# RUN: env PYTHONPATH=%heed_src/python:%heed_src/test/support %python %s %heed_bin/heedc %heed_src %cc %t opencl
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
# REQUIRES: opencl
"""States on a device: they stay there from call to call, come to the host where they are asked for, and a call that fails, at any of the driver's functions,
leaves them as they were. Against the same model on the processor, and the bytes that a call copies. On OpenCL here, on CUDA in device-states-cuda.test."""
import ctypes
import os
import pathlib
import subprocess
import sys

import numpy as np

import cuda_stub
from runs import expect, fails, finish, run

heedc, source, cc, folder, kind = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], pathlib.Path(sys.argv[4]), sys.argv[5]
library = {"opencl": "libOpenCL.so.1", "cuda": "libcuda.so.1"}[kind]


def again(**environment):
    """The test, with a library that counts and fails, before the real one if there is one."""
    done = run(sys.executable, *sys.argv, env={**os.environ, "LD_LIBRARY_PATH": str(folder), "FAIL": "", "AT": "0", "HEEDC": heedc, **environment})
    print(done.stdout, done.stderr)
    expect(done.returncode == 0 and "not given back" not in done.stderr, "the test itself")
    finish()


folder.mkdir(parents=True, exist_ok=True)
if "FAIL" not in os.environ and kind == "cuda":
    cuda_stub.build(cc, source, folder)
    again()
if "FAIL" not in os.environ:
    found = subprocess.run(["sh", "-c", "ldconfig -p | sed -n 's/.*libOpenCL.so.1 .*=> //p'"], capture_output=True, text=True).stdout.split()[0]
    done = run(*cc.split(), "-shared", "-fPIC", "-O1", "-o", folder / "libOpenCL.so.1", source / "test/e2e/Inputs/opencl-stub.c", "-ldl")
    expect(done.returncode == 0, done.stderr)
    again(REAL=os.path.realpath(found))

import heed

rng = np.random.default_rng(23)
uniform = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)
stub = ctypes.CDLL(str(folder / library))
bytes_copied = getattr(stub, f"{kind}_stub_copied")
bytes_copied.restype = ctypes.c_long
libc = ctypes.CDLL(None)


def fail_at(name, at):
    """The stub reads the process's own environment."""
    for key, value in (("FAIL", name), ("AT", str(at)), ("UNTIL", str(at))):
        libc.setenv(key.encode(), value.encode(), 1)


MODEL = """model cache(; H = 2) {
  state kc, vc: f32[B, H, C, E], len: i32[B], sum: f32[B, E], text: f32[B, C]
  entry forward(k: f32[B, N, H, E], v: f32[B, N, H, E], at: i64[N]) {
    sum[b, e] = sum[b, e] + (sum(n) (sum(h) k[b, n, h, e]))
    text[b, len[b] + n] = k[b, n, 0, 0]
    text[b, c] = text[b, C - 1 - c] / 2 + 1
    kc[b, h, len[b] + n, e] = k[b, n, h, e]
    vc[b, h, at[n], e] = v[b, n, h, e] + sum[b, e]
    s[b, h, i:C, j:C] = sum(e) kc[b, h, i, e] * vc[b, h, j, e]
    p[b, h, i, j] = softmax(j) s[b, h, i, j]
    o[b, h, i, e] = sum(j) p[b, h, i, j] * vc[b, h, j, e]
    len[b] = len[b] + N
    return o
  }
}"""
(folder / "cache.heed").write_text(MODEL)
os.environ["HEED_TARGET"] = kind
device = heed.compile(folder / "cache.heed", target=f"x86-64,{kind}")
del os.environ["HEED_TARGET"]
host = heed.compile(folder / "cache.heed", target="x86-64")
B, H, C, E = 2, 2, 9, 4
names = ("kc", "vc", "len", "sum", "text")
there, here = device.state(B=B, C=C, E=E), host.state(B=B, C=C, E=E)


def near(a, b, what):
    expect(a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=1e-5), f"{what}: {np.abs(np.asarray(a, float) - b).max()}")


def same(what):
    for name in names:
        near(there[name], here[name], f"{what}: {name}")


def both(n, what):
    k, v, at = uniform(B, n, H, E), uniform(B, n, H, E), rng.permutation(C)[:n].astype(np.int64)
    near(device(k, v, at, state=there), host(k, v, at, state=here), what)


both(3, "a prompt")
before = bytes_copied()
both(1, "a step")
# Inputs, result, positions (each row's, and what they are made of), and nothing of the caches.
copied = bytes_copied() - before
expect(copied == 2 * B * H * E * 4 + 8 + B * H * C * E * 4 + 40, f"a step copies {copied} bytes")
same("after steps")
both(1, "after they were asked for")
for change in (lambda s: s.permute("B", [1, 0]), lambda s: s.permute("B", [0, 0]),
               lambda s: s.__setitem__("vc", np.full((B, H, C, E), 0.25, np.float32)), lambda s: s.__setitem__("len", np.full(B, 2, np.int32))):
    change(there)
    change(here)
    both(1, "after a change on the host")
same("after changes on the host")
other = device.state(B=B, C=C, E=E)
other.copy_from(there)
for name in names:
    near(other[name], here[name], f"a copy: {name}")
# From one kind of device to the other and back, in a file.
both(1, "before a file")
there.save(folder / "state")
here.load(folder / "state")
both(1, "from a file of the device")
here.save(folder / "state")
there.load(folder / "state")
both(1, "from a file of the processor")

# The second update is outside, or a function fails: what the first one wrote is undone.
k, v = uniform(B, 1, H, E), uniform(B, 1, H, E)
saved = {name: there[name] for name in names}
fails(heed.RunError, "vc", lambda: device(k, v, np.array([C], np.int64), state=there), "a position outside")
for name in names:
    expect(np.array_equal(there[name], saved[name]), f"a position outside: {name}")
FUNCTIONS = {"opencl": (("clEnqueueNDRangeKernel", 12), ("clEnqueueSVMMemcpy", 40), ("clFinish", 2), ("clSetKernelArg", 30), ("clSVMAlloc", 8)),
             "cuda": (("cuLaunchKernel", 12), ("cuMemcpyHtoDAsync", 10), ("cuMemcpyDtoHAsync", 10), ("cuMemcpyDtoDAsync", 20), ("cuStreamSynchronize", 20),
                      ("cuCtxPushCurrent", 60), ("cuMemAlloc", 8))}
for function, most in FUNCTIONS[kind]:
    failed = 0
    for at in range(1, most):
        count = ctypes.c_int.in_dll(stub, f"calls_{function}")
        fail_at(function, count.value + at)
        try:
            device(k, v, np.array([at % C], np.int64), state=there)
        except heed.RunError as error:
            failed += 1
            expect(function in str(error) or "memory" in str(error), f"{function}, {at}: {error}")
            fail_at("", 0)
            for name in names:
                expect(np.array_equal(there[name], saved[name]), f"{function}, call {at}: {name} has changed")
        else:
            fail_at("", 0)
            for name in names:
                there[name] = saved[name]
    # A call of the same sizes allocates nothing.
    expect(bool(failed) == (function not in ("clSVMAlloc", "cuMemAlloc")), f"{function} failed {failed} times")
there.reset()
here.reset()
both(4, "after all failures")
same("after all failures")
for state in (there, other):
    state.close()
device.close()
finish()
