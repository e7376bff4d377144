"""A library opened by hand, without what the package does for its users: statuses, and buffers as they are."""
import ctypes as C

import numpy as np

from heed import abi

class Buffer(abi.Buffer):
    def __init__(self, data=None, type=0, shape=()):
        super().__init__(data=data, type=type, rank=len(shape))
        self.shape[:len(shape)] = shape


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
        self.status = self.library.heed_open_version(abi.ABI_VERSION, self.desc, C.byref(abi.Options(**options)), C.byref(self.handle))

    def error(self):
        return self.library.heed_last_error(self.handle).decode()

    def shapes(self, inputs, outputs):
        return self.library.heed_output_shapes(self.handle, None, inputs, C.c_size_t(len(inputs)), outputs, C.c_size_t(len(outputs)))

    def run(self, inputs, outputs, call=None):
        return self.library.heed_run(self.handle, None, inputs, C.c_size_t(len(inputs)), outputs, C.c_size_t(len(outputs)), call and C.byref(call))

    def close(self):
        self.library.heed_close(self.handle)
