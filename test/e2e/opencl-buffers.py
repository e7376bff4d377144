# RUN: %python %s %heed_bin %heed_src %t
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
# REQUIRES: opencl
"""A context, a queue and shared virtual memory of the caller's with the target opencl: the numbers are those of arrays of the host, other strides too, and
without the context such memory is refused with words. cuda-buffers.py has the rest, of which all but the driver is the same."""
import ctypes as C
import os
import pathlib
import sys

import numpy as np

from capi import Library, buffers
from device_attention import draw, oracle
from heed import abi
from heed.state import CallOptions
from runs import expect, finish, run

heedc, source, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
library = folder / "libattention.so"
done = run(heedc, source / "models/core/causal-attention.heed", "--target=x86-64,opencl", "--emit=shared", "-o", library)
expect(done.returncode == 0, done.stderr)
cl = C.CDLL("libOpenCL.so.1")
for name in ("clCreateContext", "clCreateCommandQueue", "clSVMAlloc"):
    getattr(cl, name).restype = C.c_void_p
platform, device, status = C.c_void_p(), C.c_void_p(), C.c_int32()
expect(cl.clGetPlatformIDs(1, C.byref(platform), None) == 0, "a platform")
expect(cl.clGetDeviceIDs(platform, C.c_uint64(0xFFFFFFFF), 1, C.byref(device), None) == 0, "a device")
context = C.c_void_p(cl.clCreateContext(None, 1, C.byref(device), None, None, C.byref(status)))
queue = C.c_void_p(cl.clCreateCommandQueue(context, device, C.c_uint64(0), C.byref(status)))


class There:
    """A copy of an array in the context's shared virtual memory."""

    def __init__(self, array, kind=abi.DEVICE_OPENCL):
        self.whole, self.array, self.kind = array if array.base is None else array.base, array, kind
        self.memory = cl.clSVMAlloc(context, C.c_uint64(1), C.c_size_t(self.whole.nbytes), 0)
        expect(self.memory and cl.clEnqueueSVMMemcpy(queue, 1, C.c_void_p(self.memory), self.whole.ctypes.data_as(C.c_void_p), C.c_size_t(self.whole.nbytes), 0, None, None) == 0, "memory")

    def buffer(self):
        array = self.array
        buffer = abi.Buffer(data=self.memory, type=abi.F32, rank=array.ndim, deviceType=self.kind, byteOffset=array.ctypes.data - self.whole.ctypes.data)
        buffer.shape[:array.ndim] = array.shape
        self.steps = (C.c_int64 * array.ndim)(*(step // 4 for step in array.strides))
        buffer.strides = self.steps
        return buffer

    def get(self):
        out = np.empty_like(self.whole)
        expect(cl.clEnqueueSVMMemcpy(queue, 1, out.ctypes.data_as(C.c_void_p), C.c_void_p(self.memory), C.c_size_t(out.nbytes), 0, None, None) == 0, "memory")
        return out

    def free(self):
        cl.clSVMFree(context, C.c_void_p(self.memory))


def array_of(*given):
    return (abi.Buffer * len(given))(*given)


arrays = draw(1, 2, 2, 40, 40, 16, 16)
want = oracle(**arrays)
arrays["k"] = arrays["k"].transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3)
there = [There(array) for array in arrays.values()]
wide = np.full((1, 2, 40, 24), 7, np.float32)
out = There(wide[..., 4:20])
model = Library(library, "attention", target=b"opencl", context=context)
expect(model.status == 0, model.error())
for call in (None, CallOptions(stream=queue)):
    expect(model.run(array_of(*(one.buffer() for one in there)), array_of(out.buffer()), call) == 0, model.error())
    got = out.get()
    expect(np.abs(got[..., 4:20] - want).max() <= 1e-5 and (got[..., :4] == 7).all() and (got[..., 20:] == 7).all(), f"all there, {call}")
host = np.full(want.shape, np.nan, np.float32)
expect(model.run(array_of(there[0].buffer(), there[1].buffer(), buffers(arrays["v"])[0]), buffers(host), CallOptions(stream=queue)) == 0, model.error())
expect(np.abs(host - want).max() <= 1e-5, "either side")
model.close()

plain = Library(library, "attention", target=b"opencl")
expect(plain.run(array_of(*(one.buffer() for one in there)), buffers(host)) == 15 and "input 'q': expected memory of the CPU (device type 1) or of the model's OpenCL device" in plain.error(),
       plain.error())
expect(plain.run(buffers(*(np.ascontiguousarray(a) for a in arrays.values())), buffers(host), CallOptions(stream=queue)) == 15 and "call.stream: expected null" in plain.error(), plain.error())
plain.close()
numbered = Library(library, "attention", target=b"opencl", context=context, device=1)
expect(numbered.status == 15 and "options.context has no OpenCL device of number 1" in numbered.error(), numbered.error())
numbered.close()
for one in (*there, out):
    one.free()
finish()
