"""Arrays in the memory of CUDA's driver of the tests, as a host brings them that has a context, streams and memory of its own."""
import ctypes as C

import numpy as np

from heed import abi


class Driver:
    """What a host calls of the driver that a program of the test loads, too. The device's primary context is this thread's current one, or with `own` another one."""

    def __init__(self, own=False):
        self.library = C.CDLL("libcuda.so.1")
        self.context = C.c_void_p()
        if own:
            self.library.cuda_stub_context.restype = C.c_void_p
            self.context.value = self.library.cuda_stub_context()
        else:
            self.check(self.library.cuDevicePrimaryCtxRetain(C.byref(self.context), 0))
        self.own = own
        self.check(self.library.cuCtxPushCurrent_v2(self.context))

    def check(self, status):
        assert status == 0, status

    def allocate(self, nbytes):
        memory = C.c_uint64()
        self.check(self.library.cuMemAlloc_v2(C.byref(memory), C.c_size_t(max(nbytes, 1))))
        return memory.value

    def free(self, memory):
        self.check(self.library.cuMemFree_v2(C.c_uint64(memory)))

    def stream(self):
        made = C.c_void_p()
        self.check(self.library.cuStreamCreate(C.byref(made), 1))
        return made

    def destroy(self, stream):
        self.check(self.library.cuStreamDestroy_v2(stream))

    def launches(self, stream=None):
        return self.library.cuda_stub_launches(stream)

    def calls(self, function):
        return C.c_int.in_dll(self.library, "calls_" + function).value

    def copied(self):
        """Bytes that have gone to the device or come from it."""
        self.library.cuda_stub_copied.restype = C.c_long
        return self.library.cuda_stub_copied()

    def close(self):
        self.check(self.library.cuCtxPopCurrent_v2(C.byref(C.c_void_p())))
        if not self.own:
            self.check(self.library.cuDevicePrimaryCtxRelease_v2(0))


class There:
    """A copy of an array of NumPy's on the device, with its strides where `strided`."""

    def __init__(self, driver, array, strided=False, kind=abi.DEVICE_CUDA, number=0):
        self.driver, self.kind, self.number = driver, kind, number
        self.whole = array.base if strided else array
        self.first = (array.ctypes.data - self.whole.ctypes.data) if strided else 0
        self.shape, self.dtype, self.strides = array.shape, array.dtype, array.strides if strided else None
        self.memory = driver.allocate(self.whole.nbytes)
        C.memmove(self.memory, self.whole.ctypes.data, self.whole.nbytes)  # the driver's memory is the processor's

    def buffer(self):
        buffer = abi.Buffer(data=self.memory, type={"f": abi.F32, "i": abi.I32}[self.dtype.kind], rank=len(self.shape), deviceType=self.kind,
                            deviceNumber=self.number, byteOffset=self.first)
        buffer.shape[:len(self.shape)] = self.shape
        if self.strides:
            self.steps = (C.c_int64 * len(self.shape))(*(step // self.dtype.itemsize for step in self.strides))
            buffer.strides = self.steps
        return buffer

    def get(self):
        """What the whole memory holds."""
        out = np.empty_like(self.whole)
        C.memmove(out.ctypes.data, self.memory, out.nbytes)
        return out

    def free(self):
        self.driver.free(self.memory)
