"""Runs kernels as the compiler makes them, on arrays between pages that may not be touched."""
import ctypes
import glob
import mmap
import os
import re
import subprocess

import numpy as np

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Dim(ctypes.Structure):
    _fields_ = [("min", ctypes.c_int32), ("extent", ctypes.c_int32), ("stride", ctypes.c_int32), ("flags", ctypes.c_uint32)]


class Buffer(ctypes.Structure):
    """halide_buffer_t; the element type is code, bits and lanes in one word."""
    _fields_ = [("device", ctypes.c_uint64), ("interface", ctypes.c_void_p), ("host", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("type", ctypes.c_uint32), ("dimensions", ctypes.c_int32),
                ("dim", ctypes.POINTER(Dim)), ("padding", ctypes.c_void_p)]


CODES = {"i": 0, "u": 1, "f": 2, "b": 1}


def guarded(array, at_end):
    """A copy that ends where (or, if not at_end, starts after) a page begins that may not be read or written."""
    array = np.ascontiguousarray(array)
    pages = -(-array.nbytes // PAGE)
    memory = mmap.mmap(-1, (pages + 2) * PAGE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for wall in (base, base + (pages + 1) * PAGE):
        assert libc.mprotect(wall, PAGE, 0) == 0
    offset = PAGE + (pages * PAGE - array.nbytes if at_end else 0)
    copy = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
    copy[...] = array
    return copy


def as_buffer(array):
    dims = (Dim * max(1, array.ndim))()
    for k in range(array.ndim):
        axis = array.ndim - 1 - k  # Halide's first dim is the innermost
        stride = int(np.prod(array.shape[axis + 1:], dtype=np.int64))
        dims[k] = Dim(0, array.shape[axis], stride, 0)
    bits = 1 if array.dtype == np.bool_ else 8 * array.itemsize
    return Buffer(0, None, array.ctypes.data, 0, CODES[array.dtype.kind] | bits << 8 | 1 << 16, array.ndim, dims, None)


SCALARS = {"f": ctypes.c_float, "i": ctypes.c_int32}


def compile_kernels(text, folder, target="host", passes=("--attn-form-kernels", "--attn-to-halide")):
    """Compiles a module of models; returns its kernels' library and the scheduled IR."""
    os.makedirs(folder, exist_ok=True)
    ir = subprocess.run(["heed-opt", *passes], input=text, capture_output=True, text=True)
    assert ir.returncode == 0, ir.stderr
    # Kernels alone: the tool does not know host code.
    pipelines = re.findall(r"^  halide\.pipeline.*?^  }$", ir.stdout, re.M | re.S)
    with open(folder + "/kernels.mlir", "w") as f:
        f.write("module {\n" + "\n".join(pipelines) + "\n}\n")
    subprocess.check_call(["heed-halide", folder + "/kernels.mlir", "-o", folder, "--runtime", "--no-user-context", "--target", target])
    path = folder + "/kernels.so"
    subprocess.check_call(["cc", "-shared", "-o", path, *sorted(glob.glob(folder + "/*.o")), "-lm", "-lpthread", "-ldl"])
    return ctypes.CDLL(os.path.abspath(path)), ir.stdout


class Kernel:
    """One kernel of a library, called with the model's arguments: the host's call says which extents it takes."""

    def __init__(self, library, ir, name=None):
        calls = re.findall(r"halide.call @(\w+)\((.*?) : ", ir)
        self.name, arguments = next(c for c in calls if name in (None, c[0]))
        self.function = getattr(library, self.name)
        constants = dict(re.findall(r"(%\w+) = arith.constant (\d+) : index", ir))
        dims = {v: (int(a), int(constants[c])) for v, a, c in re.findall(r"(%\w+) = tensor.dim %arg(\d+), (%\w+)", ir)}
        self.arguments = [dims.get(a) or int(a[4:]) for a in arguments.split(", ")]

    def __call__(self, inputs, outputs):
        values = [inputs[a[0]].shape[a[1]] if isinstance(a, tuple) else inputs[a] for a in self.arguments]
        call(self.function, values, outputs)


def call(function, inputs, outputs):
    keep, arguments = [], []
    for value in [*inputs, *outputs]:
        if isinstance(value, np.ndarray):
            keep.append(as_buffer(value))
            arguments.append(ctypes.byref(keep[-1]))
        else:
            arguments.append(SCALARS[np.asarray(value).dtype.kind](value))
    status = function(*arguments)
    assert status == 0, status
