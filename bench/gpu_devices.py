"""A device that cases of the group `gpu` run on, by its driver's own functions: memory, a stream, the time of copies, limits.

Arrays stay on the device from run to run, so that what is timed copies nothing but what the compiled code asks for. Nothing needs to be installed but the driver.
"""
import ctypes as C
import time

import numpy as np

from heed import abi

FMAS = 128  # of f32 in a cycle of a multiprocessor: NVIDIA's, from compute capability 8.6 on and of 9.0


class DeviceError(RuntimeError):
    pass


def checked(function, status):
    if status:
        raise DeviceError(f"{function} failed ({status})")


class Cuda:
    """The first device of CUDA's driver, with its primary context, which the runtime uses too."""

    target, kind = "cuda", abi.DEVICE_CUDA
    context = None

    def __init__(self, copied):
        """`copied`: bytes of the two arrays between which copies are timed."""
        self.driver, primary = C.CDLL("libcuda.so.1"), C.c_void_p()
        self.call("cuInit", C.c_uint(0))
        began = time.perf_counter()
        self.number = self.made("cuDeviceGet", C.c_int, 0)
        self.call("cuDevicePrimaryCtxRetain", C.byref(primary), self.number)
        self.call("cuCtxPushCurrent_v2", primary)
        self.began = time.perf_counter() - began
        self.stream = self.made("cuStreamCreate", C.c_void_p, 1)
        self.events = [self.made("cuEventCreate", C.c_void_p, 0) for _ in range(2)]
        name = C.create_string_buffer(128)
        self.call("cuDeviceGetName", name, 128, self.number)
        self.name = name.value.decode()
        self.copied, self.ends = copied, [self.allocate(copied) for _ in range(2)]

    def call(self, name, *arguments):
        checked(name, getattr(self.driver, name)(*arguments))

    def made(self, name, kind, *arguments):
        found = kind()
        self.call(name, C.byref(found), *arguments)
        return found

    def attribute(self, number):
        return self.made("cuDeviceGetAttribute", C.c_int, number, self.number).value

    def allocate(self, size):
        return self.made("cuMemAlloc_v2", C.c_uint64, C.c_size_t(max(size, 1))).value

    def free(self, memory):
        self.call("cuMemFree_v2", C.c_uint64(memory))

    def finish(self):
        self.call("cuStreamSynchronize", self.stream)

    def put(self, memory, array):
        self.call("cuMemcpyHtoDAsync_v2", C.c_uint64(memory), array.ctypes.data_as(C.c_void_p), C.c_size_t(array.nbytes), self.stream)
        self.finish()

    def get(self, array, memory):
        self.call("cuMemcpyDtoHAsync_v2", array.ctypes.data_as(C.c_void_p), C.c_uint64(memory), C.c_size_t(array.nbytes), self.stream)
        self.finish()

    def copy(self):
        self.call("cuMemcpyDtoDAsync_v2", C.c_uint64(self.ends[0]), C.c_uint64(self.ends[1]), C.c_size_t(self.copied), self.stream)

    # The device is busy while the host gets to a call's first kernel, whose events then have nothing of the host between them; and caches hold none of the call's arrays.
    delay = copy

    def copy_seconds(self):
        """By the device's clock."""
        self.call("cuEventRecord", self.events[0], self.stream)
        self.copy()
        self.call("cuEventRecord", self.events[1], self.stream)
        self.finish()
        return 1e-3 * self.made("cuEventElapsedTime", C.c_float, *self.events).value

    def peak(self):
        """f32 operations in a second, and where the number is from; 0 where it is not known."""
        count, clock = self.attribute(16), self.attribute(13)  # multiprocessors, kHz
        return count * clock * 1e3 * FMAS * 2.0, f"{count} multiprocessors x {clock / 1e3:.0f} MHz x {FMAS} x 2"

    def close(self):
        for memory in self.ends:
            self.free(memory)
        for event in self.events:
            self.call("cuEventDestroy_v2", event)
        self.call("cuStreamDestroy_v2", self.stream)
        self.call("cuCtxPopCurrent_v2", C.byref(C.c_void_p()))
        self.call("cuDevicePrimaryCtxRelease_v2", self.number)


class OpenCL:
    """The first device of type GPU, else any, with a context, a queue and shared virtual memory. Times are the host's."""

    target, kind = "opencl", abi.DEVICE_OPENCL

    def __init__(self, copied):
        self.cl = cl = C.CDLL("libOpenCL.so.1")
        for name in ("clCreateContext", "clCreateCommandQueue", "clSVMAlloc"):
            getattr(cl, name).restype = C.c_void_p
        status, began = C.c_int32(), time.perf_counter()
        self.device = self.find()
        self.context = C.c_void_p(cl.clCreateContext(None, 1, C.byref(self.device), None, None, C.byref(status)))
        checked("clCreateContext", status.value)
        self.stream = C.c_void_p(cl.clCreateCommandQueue(self.context, self.device, C.c_uint64(0), C.byref(status)))
        checked("clCreateCommandQueue", status.value)
        self.began = time.perf_counter() - began
        self.name = self.told(0x102B)
        self.copied, self.ends = copied, [self.allocate(copied) for _ in range(2)]

    def find(self):
        platforms, count, device = (C.c_void_p * 16)(), C.c_uint32(), C.c_void_p()
        checked("clGetPlatformIDs", self.cl.clGetPlatformIDs(16, platforms, C.byref(count)))
        for kind in (1 << 2, 0xFFFFFFFF):  # GPU, all
            for platform in platforms[:min(count.value, 16)]:
                if self.cl.clGetDeviceIDs(C.c_void_p(platform), C.c_uint64(kind), 1, C.byref(device), None) == 0:
                    return device
        raise DeviceError("OpenCL knows no device")

    def told(self, what, number=False):
        found = C.create_string_buffer(512)
        checked("clGetDeviceInfo", self.cl.clGetDeviceInfo(self.device, what, C.c_size_t(512), found, None))
        return C.cast(found, C.POINTER(C.c_uint32))[0] if number else found.value.decode()

    def allocate(self, size):
        memory = self.cl.clSVMAlloc(self.context, C.c_uint64(1), C.c_size_t(max(size, 1)), 0)
        if not memory:
            raise DeviceError(f"clSVMAlloc gives no {size} bytes")
        return memory

    def free(self, memory):
        self.cl.clSVMFree(self.context, C.c_void_p(memory))

    def finish(self):
        checked("clFinish", self.cl.clFinish(self.stream))

    def move(self, to, source, size):
        checked("clEnqueueSVMMemcpy", self.cl.clEnqueueSVMMemcpy(self.stream, 1, C.c_void_p(to), C.c_void_p(source), C.c_size_t(size), 0, None, None))

    def put(self, memory, array):
        self.move(memory, array.ctypes.data, array.nbytes)

    def get(self, array, memory):
        self.move(array.ctypes.data, memory, array.nbytes)

    def delay(self):
        """Nothing: it would be counted."""

    def copy_seconds(self):
        began = time.perf_counter()
        self.move(*self.ends, self.copied)
        return time.perf_counter() - began

    def peak(self):
        count, clock, maker = self.told(0x1002, True), self.told(0x100C, True), self.told(0x102C)  # compute units, MHz, vendor
        lanes = FMAS if "NVIDIA" in maker else 0
        return count * clock * 1e6 * lanes * 2.0, f"{count} compute units x {clock} MHz" + (f" x {lanes} x 2" if lanes else ", of unknown width")

    def close(self):
        for memory in self.ends:
            self.free(memory)
        self.cl.clReleaseCommandQueue(self.stream)
        self.cl.clReleaseContext(self.context)


DEVICES = {"cuda": Cuda, "opencl": OpenCL}


def limits(device):
    """The best of ten copies on the device, reading and writing, and the peak of its attributes."""
    device.put(device.ends[1], np.arange(device.copied // 4, dtype=np.int32))  # memory that nobody wrote may be no memory
    device.copy_seconds()
    seconds = min(device.copy_seconds() for _ in range(10))
    peak, text = device.peak()
    return {"bandwidth": 2.0 * device.copied / seconds if seconds > 0 else 0.0, "flops": peak, "flops_from": text}


class There:
    """Memory of the device, in a buffer as heed.h has it."""

    def __init__(self, device, type_, shape, size):
        self.device, self.memory = device, device.allocate(size)
        self.buffer = abi.Buffer(data=self.memory, type=type_, rank=len(shape), deviceType=device.kind, deviceNumber=0)
        self.buffer.shape[:len(shape)] = shape

    @classmethod
    def of(cls, device, array):
        array = np.ascontiguousarray(array)
        made = cls(device, {"f": abi.F32, "i": abi.I32}[array.dtype.kind], array.shape, array.nbytes)
        device.put(made.memory, array)
        return made

    def get(self):
        """What it holds, f32."""
        array = np.empty(self.buffer.shape[:self.buffer.rank], np.float32)
        self.device.get(array, self.memory)
        return array

    def free(self):
        self.device.free(self.memory)
