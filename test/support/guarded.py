"""Kernels on arrays between pages that may not be touched: a read or write outside of an array ends the test."""
import ctypes
import mmap

import numpy as np

from kernels import Model

PAGE = mmap.PAGESIZE
protect = ctypes.CDLL(None, use_errno=True).mprotect
protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def guarded(array, at_end):
    """A copy that ends where a closed page begins or, if not `at_end`, starts where one ends."""
    array = np.ascontiguousarray(array)
    pages = -(-array.nbytes // PAGE)
    memory = mmap.mmap(-1, (pages + 2) * PAGE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for wall in (base, base + (pages + 1) * PAGE):
        assert protect(wall, PAGE, 0) == 0
    offset = PAGE + (pages * PAGE - array.nbytes if at_end else 0)
    copy = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
    copy[...] = array
    return copy


class GuardedModel(Model):
    """Every array of a kernel's call stands at a wall, in turn at the front and at the back."""
    at_end = False

    def call(self, name, inputs, outs):
        place = lambda v: guarded(v, self.at_end) if isinstance(v, np.ndarray) else v
        results = [place(out) for out in outs]
        super().call(name, [place(v) for v in inputs], results)
        for out, result in zip(outs, results):
            out[...] = result

    def both(self, *arguments):
        """The results with the walls behind the arrays and before them."""
        for self.at_end in (False, True):
            yield self(*arguments)
