"""Arrays as a model's buffers: NumPy's, what has DLPack, numbers and lists."""
import ctypes as C
import math
import sys

import numpy as np

from heed import abi
from heed.errors import ElementTypeError, RangeError, RunError, ShapeError

try:
    from ml_dtypes import bfloat16
except ImportError:  # NumPy has no such type
    bfloat16 = None

DTYPES = {abi.F32: np.dtype("f4"), abi.F16: np.dtype("f2"), abi.I8: np.dtype("i1"), abi.I16: np.dtype("i2"), abi.I32: np.dtype("i4"),
          abi.I64: np.dtype("i8"), abi.BOOL: np.dtype("?"), abi.U8: np.dtype("u1"), abi.F64: np.dtype("f8")}
if bfloat16 is not None:
    DTYPES[abi.BF16] = np.dtype(bfloat16)
CODES = {dtype: code for code, dtype in DTYPES.items()}
ON_CPU = {abi.DEVICE_CPU, abi.DEVICE_CUDA_HOST}
#: The stream that what is read and written on a device is put on, as DLPack and heed_call name it: CUDA's default one.
STREAM = 1
INTEGERS = {abi.I8, abi.I16, abi.I32, abi.I64, abi.U8}


class View:
    """Where an array lies: address, heed_type, shape, strides in elements (None: dense), and kind and number of the device. `owner` keeps it alive."""

    def __init__(self, data, code, shape, strides, owner, device=(abi.DEVICE_CPU, 0)):
        self.data, self.code, self.shape, self.strides, self.owner, self.device = data, code, tuple(shape), strides, owner, device

    @property
    def on_device(self):
        return self.device[0] not in ON_CPU

    @property
    def nbytes(self):
        size = 8 if self.code == abi.F64 else DTYPES.get(self.code, np.dtype("u2")).itemsize
        return math.prod(self.shape) * size

    @property
    def dtype_name(self):
        return "bfloat16" if self.code == abi.BF16 else DTYPES[self.code].name

    def fill(self, buffer):
        """Writes the view into a heed_buffer, which it outlives."""
        buffer.size, buffer.data, buffer.type, buffer.rank = C.sizeof(abi.Buffer), self.data, self.code, len(self.shape)
        (buffer.deviceType, buffer.deviceNumber), buffer.byteOffset = self.device, 0
        buffer.shape[:len(self.shape)] = self.shape
        if self.strides is not None:
            self._strides = (C.c_int64 * max(len(self.strides), 1))(*self.strides)
            buffer.strides = self._strides


# ----------------------------------------------------------------------------------------------------------------------
# DLPack
# ----------------------------------------------------------------------------------------------------------------------


class DLTensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("deviceType", C.c_int32), ("deviceNumber", C.c_int32), ("ndim", C.c_int32), ("code", C.c_uint8),
                ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)), ("strides", C.POINTER(C.c_int64)),
                ("byteOffset", C.c_uint64)]


class DLManagedTensor(C.Structure):
    pass


DLManagedTensor._fields_ = [("tensor", DLTensor), ("context", C.c_void_p), ("deleter", C.CFUNCTYPE(None, C.POINTER(DLManagedTensor)))]

# Kind and bits of DLPack's types.
DLPACK = {(2, 32): abi.F32, (2, 16): abi.F16, (4, 16): abi.BF16, (2, 64): abi.F64, (0, 8): abi.I8, (0, 16): abi.I16, (0, 32): abi.I32,
          (0, 64): abi.I64, (1, 8): abi.U8, (6, 8): abi.BOOL}
CAPSULE = b"dltensor"
USED = b"used_dltensor"  # what a capsule is called whose content somebody has taken over; as long as the process

_pointer = C.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = C.c_void_p, [C.py_object, C.c_char_p]
_rename = C.pythonapi.PyCapsule_SetName
_rename.restype, _rename.argtypes = C.c_int, [C.py_object, C.c_char_p]


class Borrowed:
    """A tensor of another library, given back at the end."""

    def __init__(self, managed):
        self.managed = managed

    def __del__(self):
        if self.managed.contents.deleter:
            self.managed.contents.deleter(self.managed)


def from_dlpack(value, what, cuda=False):
    """A view of what has DLPack; with `cuda` it may lie on a device of CUDA, whoever's it is."""
    device = tuple(int(part) for part in value.__dlpack_device__())
    on_device = device[0] not in ON_CPU
    if on_device and not (cuda and device[0] in (abi.DEVICE_CUDA, abi.DEVICE_CUDA_MANAGED)):
        raise RunError(f"{what} lies on a device of kind {device[0]}, expected the CPU (1){' or CUDA (2)' if cuda else ''}", "device")
    capsule = value.__dlpack__(stream=STREAM) if on_device else value.__dlpack__()
    managed = C.cast(_pointer(capsule, CAPSULE), C.POINTER(DLManagedTensor))
    _rename(capsule, USED)
    owner, tensor = Borrowed(managed), managed.contents.tensor
    code = DLPACK.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if code is None:
        raise ElementTypeError(f"{what}: no model has the element type of DLPack's kind {tensor.code} with {tensor.bits} bits", "type")
    shape = tensor.shape[:tensor.ndim]
    strides = list(tensor.strides[:tensor.ndim]) if tensor.strides else None
    return View((tensor.data or 0) + tensor.byteOffset, code, shape, strides, owner, device)


# ----------------------------------------------------------------------------------------------------------------------
# NumPy
# ----------------------------------------------------------------------------------------------------------------------


def from_numpy(array, code=None):
    """A view of an array as it lies; None where it must be copied (unaligned, another byte order, odd strides)."""
    found = CODES.get(array.dtype)
    if found is None and array.dtype == np.uint16 and code in (abi.BF16, None):
        found = abi.BF16  # its bits
    if found is None:
        return None
    size = array.itemsize
    if not array.flags.aligned or any(stride % size for stride in array.strides):
        return None
    strides = None if array.flags.c_contiguous else [stride // size for stride in array.strides]
    return View(array.ctypes.data, found, array.shape, strides, array)


def view_of(value, code, what, cuda=False):
    """An input: `value` as an array of heed_type `code`, without a copy wherever it is one. Integers of another width convert if
    they fit, Python's numbers and lists always; real numbers of another type are an error."""
    wanted = abi.TYPE_NAMES[code]
    if not isinstance(value, (np.ndarray, np.generic)) and hasattr(value, "__dlpack__"):
        view = from_dlpack(value, what, cuda)
        if view.code == code:
            return view
        if view.on_device or not (view.code in INTEGERS and code in INTEGERS):
            raise ElementTypeError(f"{what} is {abi.TYPE_NAMES[view.code]}, expected {wanted}", "type")
        value = np.from_dlpack(value)
    is_array = isinstance(value, (np.ndarray, np.generic))
    array = np.asarray(value)
    if array.dtype == object:
        raise ElementTypeError(f"{what}: expected an array of {wanted}, found {type(value).__name__}", "type")
    # Another byte order is another dtype to NumPy.
    view = from_numpy(array, code)
    if view is not None and view.code == code:
        return view
    if code not in DTYPES:
        raise ElementTypeError(f"{what} is {array.dtype}, expected {wanted}: an array of ml_dtypes.bfloat16, its bits as uint16, or a "
                               "tensor with DLPack", "type")
    dtype, kind = DTYPES[code], array.dtype.kind
    same = array.dtype.newbyteorder("=") == dtype
    if same or not is_array and (kind in "iub" or code not in INTEGERS and code != abi.BOOL):
        same = same or kind not in "iu" or code not in INTEGERS
    elif not (kind in "iu" and code in INTEGERS):
        hint = f"; .astype(numpy.{dtype.name}) rounds it" if kind == "f" and dtype.kind == "f" else ""
        raise ElementTypeError(f"{what} is {array.dtype}, expected {wanted}{hint}", "type")
    if not same and array.size and code in INTEGERS:
        limits = np.iinfo(dtype)
        if array.min() < limits.min or array.max() > limits.max:
            raise RangeError(f"{what} holds {array.min() if array.min() < limits.min else array.max()}, which is no {wanted}", "range")
    return from_numpy(np.array(array, dtype, order="C"), code)


def result_view(value, code, shape, what, cuda=False):
    """An array that was given for a result, to be written as it lies."""
    wanted = f"{abi.TYPE_NAMES[code]}{list(shape)}"
    if isinstance(value, np.ndarray):
        view = from_numpy(value, code)
        if view is None or view.code != code:
            raise ElementTypeError(f"{what} is {value.dtype}, expected {wanted}", "type")
        if not value.flags.writeable:
            raise RunError(f"{what} cannot be written to", "argument")
    elif hasattr(value, "__dlpack__"):
        view = from_dlpack(value, what, cuda)
        if view.code != code:
            raise ElementTypeError(f"{what} is {abi.TYPE_NAMES[view.code]}, expected {wanted}", "type")
    else:
        raise ElementTypeError(f"{what}: expected an array of {wanted}, found {type(value).__name__}", "type")
    if view.shape != tuple(shape):
        raise ShapeError(f"{what} has shape {list(view.shape)}, expected {list(shape)}", "shape")
    return view


def aligned(shape, dtype):
    """A new array whose elements begin at 64 bytes, as kernels like them best."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + size].view(dtype).reshape(shape)


def result_like(value, code, shape, what):
    """A new array on a device: of the library that `value`, which lies there, is of."""
    name = {abi.BF16: "bfloat16", abi.BOOL: "bool"}.get(code) or DTYPES[code].name
    if hasattr(value, "new_empty"):  # PyTorch
        return value.new_empty(tuple(shape), dtype=getattr(sys.modules[type(value).__module__.partition(".")[0]], name))
    if hasattr(value, "__array_namespace__"):  # CuPy and others of the array standard
        library = value.__array_namespace__()
        return library.empty(tuple(shape), dtype=getattr(library, name), device=value.device)
    raise RunError(f"{what}: no array can be made like {type(value).__name__}, which lies on a device: give one (out=)", "argument")


def new_result(code, shape, what):
    if code not in DTYPES:
        raise ElementTypeError(f"{what} is bf16, which NumPy has not: install ml_dtypes, or give an array of uint16 for its bits (out=)",
                               "type")
    return aligned(tuple(shape), DTYPES[code])
