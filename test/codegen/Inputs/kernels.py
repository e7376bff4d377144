"""Calls compiled halide.pipelines from Python: links a folder of objects to a shared library and passes NumPy arrays."""
import ctypes
import glob
import os
import subprocess

import numpy as np


class Dim(ctypes.Structure):
    _fields_ = [("min", ctypes.c_int32), ("extent", ctypes.c_int32), ("stride", ctypes.c_int32), ("flags", ctypes.c_uint32)]


class Buffer(ctypes.Structure):
    """halide_buffer_t; the element type is code, bits and lanes in one word."""
    _fields_ = [("device", ctypes.c_uint64), ("interface", ctypes.c_void_p), ("host", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("type", ctypes.c_uint32), ("dimensions", ctypes.c_int32),
                ("dim", ctypes.POINTER(Dim)), ("padding", ctypes.c_void_p)]


CODES = {"i": 0, "u": 1, "f": 2, "b": 1}


def as_buffer(array):
    dims = (Dim * max(1, array.ndim))()
    for k in range(array.ndim):
        axis = array.ndim - 1 - k  # Halide's first dim is the innermost
        dims[k] = Dim(0, array.shape[axis], array.strides[axis] // array.itemsize, 0)
    bits = 1 if array.dtype == np.bool_ else 8 * array.itemsize
    return Buffer(0, None, array.ctypes.data, 0, CODES[array.dtype.kind] | bits << 8 | 1 << 16, array.ndim, dims, None)


SCALARS = {np.dtype(np.float32): ctypes.c_float, np.dtype(np.float64): ctypes.c_double, np.dtype(np.int32): ctypes.c_int32,
           np.dtype(np.int64): ctypes.c_int64, np.dtype(np.int8): ctypes.c_int8, np.dtype(np.bool_): ctypes.c_bool}


class Kernels:
    """The kernels in `folder`, compiled with --runtime and --no-user-context."""

    def __init__(self, folder, cc):
        path = os.path.join(folder, "kernels.so")
        subprocess.check_call([cc, "-shared", "-o", path, *sorted(glob.glob(folder + "/*.o")), "-lm", "-lpthread", "-ldl"])
        self.library = ctypes.CDLL(path)

    def __call__(self, name, inputs, outputs):
        """Runs a kernel on arrays and NumPy scalars; it writes to `outputs`."""
        keep, arguments = [], []
        for value in [*inputs, *outputs]:
            if isinstance(value, np.ndarray):
                keep.append(as_buffer(value))
                arguments.append(ctypes.byref(keep[-1]))
            else:
                arguments.append(SCALARS[np.asarray(value).dtype](value.item()))
        status = getattr(self.library, name)(*arguments)
        assert status == 0, f"{name} returned {status}"
