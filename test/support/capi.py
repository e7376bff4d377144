"""heed.h's structs for ctypes, as ABI version 3 has them, and a library opened by hand."""
import ctypes as C

import numpy as np

ABI = 3


class Buffer(C.Structure):
    _fields_ = [("size", C.c_size_t), ("data", C.c_void_p), ("type", C.c_int32), ("rank", C.c_int32), ("deviceType", C.c_int32),
                ("deviceNumber", C.c_int32), ("byteOffset", C.c_uint64), ("strides", C.POINTER(C.c_int64)), ("shape", C.c_int64 * 16)]

    def __init__(self, data=None, type=0, shape=()):
        super().__init__(size=C.sizeof(Buffer), data=data, type=type, rank=len(shape))
        self.shape[:len(shape)] = shape


class Options(C.Structure):
    _fields_ = [("size", C.c_size_t), ("weights", C.c_void_p), ("numWeights", C.c_size_t), ("weightsData", C.c_void_p),
                ("numWeightsData", C.c_size_t), ("findWeight", C.c_void_p), ("findWeightUser", C.c_void_p),
                ("copyWeights", C.c_int32), ("convert", C.c_int32), ("threads", C.c_int32), ("wait", C.c_int32),
                ("profile", C.c_int32), ("pool", C.c_void_p), ("parallelFor", C.c_void_p), ("parallelForUser", C.c_void_p),
                ("allocator", C.c_void_p), ("memoryLimit", C.c_int64), ("log", C.c_void_p), ("logUser", C.c_void_p),
                ("target", C.c_char_p)]

    def __init__(self, **fields):
        super().__init__(size=C.sizeof(Options), **fields)


def buffers(*arrays):
    """Dense float arrays as they are."""
    for a in arrays:
        assert a.dtype == np.float32 and a.flags.c_contiguous
    return (Buffer * len(arrays))(*(Buffer(a.ctypes.data, 1, a.shape) for a in arrays))


class Library:
    """A shared library and one handle on its model; `status` says how opening went."""

    def __init__(self, file, prefix, **options):
        self.library = C.CDLL(str(file))
        self.library.heed_last_error.restype = self.library.heed_model_name.restype = C.c_char_p
        self.library.heed_target.restype = C.c_char_p
        self.desc = C.c_void_p(C.addressof(C.c_char.in_dll(self.library, prefix + "_model")))
        self.handle = C.c_void_p()
        self.status = self.library.heed_open_version(ABI, self.desc, C.byref(Options(**options)), C.byref(self.handle))

    def error(self):
        return self.library.heed_last_error(self.handle).decode()

    def shapes(self, inputs, outputs):
        return self.library.heed_output_shapes(self.handle, None, inputs, C.c_size_t(len(inputs)), outputs, C.c_size_t(len(outputs)))

    def run(self, inputs, outputs):
        return self.library.heed_run(self.handle, None, inputs, C.c_size_t(len(inputs)), outputs, C.c_size_t(len(outputs)), None)

    def close(self):
        self.library.heed_close(self.handle)
