# RUN: %python %s %heed_bin %heed_src %cc %t
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
"""The Python package on arrays that lie on a device of CUDA's, whose driver is a stub here: a library of arrays that has DLPack gives inputs and takes results,
which are its own arrays, and nothing is copied."""
import ctypes as C
import os
import pathlib
import shutil
import sys

import numpy as np

import cuda_stub
import heed
from cuda_memory import Driver
from device_attention import draw, oracle
from runs import expect, fails, finish, run

bin, source, cc = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
folder = pathlib.Path(sys.argv[4])
if "CUDA_STUB" not in os.environ:
    shutil.rmtree(folder, ignore_errors=True)
    cuda_stub.build(cc, source, folder / "stub")
    done = run(sys.executable, *sys.argv, env={**os.environ, "LD_LIBRARY_PATH": str(folder / "stub"), "CUDA_STUB": "1", "HEEDC": str(bin / "heedc")})
    print(done.stdout, done.stderr)
    expect(done.returncode == 0 and "cuda-stub" not in done.stderr, "the test itself, with the stub")
    finish()
driver = Driver()
capsule_at = C.pythonapi.PyCapsule_GetPointer
capsule_at.restype, capsule_at.argtypes = C.c_void_p, [C.py_object, C.c_char_p]


class Tensor:
    """An array on the device: memory of the driver's, which NumPy can look at here."""
    device, alive, streams = "cuda:0", 0, []

    def __init__(self, array, number=0):
        array = np.asarray(array)
        self.memory, self.number = driver.allocate(array.nbytes), number
        raw = np.frombuffer((C.c_char * max(array.nbytes, 1)).from_address(self.memory), np.uint8)[:array.nbytes]
        self.array = raw.view(array.dtype).reshape(array.shape)
        self.array[...] = array
        Tensor.alive += 1

    def __del__(self):
        driver.free(self.memory)
        Tensor.alive -= 1

    def __dlpack_device__(self):
        return (2, self.number)

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        capsule = self.array.__dlpack__()
        kind = (C.c_int32 * 2).from_address(capsule_at(capsule, b"dltensor") + 8)
        kind[0], kind[1] = self.__dlpack_device__()
        return capsule


class Standard(Tensor):
    """As the array standard wants it."""
    class namespace:
        float32, int32 = np.float32, np.int32

        @staticmethod
        def empty(shape, dtype, device):
            expect(device == "cuda:0", f"the device of a result: {device}")
            return Standard(np.full(shape, 7, dtype))

    def __array_namespace__(self):
        return self.namespace


class Torch(Tensor):
    """As PyTorch has it."""
    def new_empty(self, shape, dtype):
        return Torch(np.full(shape, 7, dtype))


float32 = np.float32  # of the module that Torch is of
arrays = draw(1, 2, 2, 40, 40, 16, 16)
want = oracle(**arrays)


def near(got, want, what):
    expect(got.shape == want.shape and np.abs(got - want).max() <= 1e-5 * np.abs(want).max(), f"{what}: the numbers")


model = heed.compile(source / "models/core/causal-attention.heed", target="cuda")
expect(model.target == "cuda", model.target)
for kind in (Standard, Torch):
    there = {name: kind(array) for name, array in arrays.items()}
    copied, launches = driver.copied(), driver.launches(C.c_void_p(1))
    result = model(**there)
    expect(isinstance(result, kind), f"a result of {type(result)}")
    near(result.array, want, kind.__name__)
    expect(driver.copied() == copied, "copies")
    expect(driver.launches(C.c_void_p(1)) > launches and set(Tensor.streams) == {1}, f"streams: {set(Tensor.streams)}")
# One of three; a call that is bound reads what its arrays hold then.
result = model(arrays["q"], there["k"], arrays["v"])  # held: its memory goes with it
near(result.array, want, "one on the device")
bound = model.bind(**there)
near(bound().array, want, "bound")
there["v"].array[...] *= 2
near(bound().array, 2 * want, "bound, again")
there["v"].array[...] /= 2
del bound
# Results that are given, on either side.
out = Tensor(np.zeros(want.shape, np.float32))
expect(model(**there, out=out) is out, "out=")
near(out.array, want, "out=")
out.array[...] = 0
expect(model(**arrays, out=out) is out, "out= alone")
near(out.array, want, "out= alone")
host = np.zeros(want.shape, np.float32)
model(**there, out=host)
near(host, want, "a result on the host")
# Heads that lie beside one another.
turned = Torch(arrays["q"].transpose(0, 2, 1, 3))
turned.array = turned.array.transpose(0, 2, 1, 3)
result = model(turned, there["k"], there["v"])
near(result.array, want, "other strides")

fails(heed.RunError, "result 'o': no array can be made like Tensor, which lies on a device: give one (out=)", lambda: model(Tensor(arrays["q"]), arrays["k"], arrays["v"]))
fails(heed.RunError, "found device type 2, number 1", lambda: model(Torch(arrays["q"], number=1), arrays["k"], arrays["v"]))
fails(heed.ElementTypeError, "input 'q' is f64, expected f32", lambda: model(Torch(arrays["q"].astype("f8")), arrays["k"], arrays["v"]))
plain = heed.compile(source / "models/core/causal-attention.heed")
fails(heed.RunError, "input 'q' lies on a device of kind 2, expected the CPU (1)", lambda: plain(**there))
fails(heed.RunError, "result 'o' lies on a device of kind 2, expected the CPU (1)", lambda: plain(**arrays, out=out))

# Several results, whole numbers, a state.
count = heed.compile("""model count {
  state seen: i32[1]
  entry add(x: f32[N, 3], i: i32[M]) {
    seen[a] = seen[a] + 1
    return y[n,c] = 2 * x[n,c], z[m] = i[m] + seen[0]
  }
}""", target="cuda")
state = count.state()
for n in (1, 2):
    y, z = count(Standard(np.ones((4, 3), np.float32)), Standard(np.arange(5, dtype=np.int32)), state=state)
    expect((y.array == 2).all() and z.array.dtype == np.int32 and (z.array == np.arange(5) + n).all(), f"step {n}: {y.array}, {z.array}")
expect(state["seen"] == [2], f"a state: {state['seen']}")
fails(heed.ElementTypeError, "input 'i' is i64, expected i32", lambda: count(np.ones((4, 3), np.float32), Standard(np.arange(5)), state=state))
fails(heed.RunError, "state 'seen' lies on a device of kind 2, expected the CPU (1)", lambda: state.__setitem__("seen", Standard(np.zeros(1, np.int32))))
state.close()
for one in (model, count, plain):
    one.close()
del there, out, turned, result, y, z, one, model, count, plain
expect(Tensor.alive == 0, f"{Tensor.alive} tensors are kept")
driver.close()
finish()
