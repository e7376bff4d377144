"""One module a system: a class `System(threads)` with `name`, `version()` and `variants(case, inputs, weights)`.

`variants` gives name -> function; the function returns (run, result): `run()` is what is timed, `result()` the last output
as an array. A variant that cannot serve a case is left out; one that fails is named in the report.
"""
import numpy as np


def aligned(shape, dtype):
    """An array whose data begin at 64 bytes, as those of the other systems do."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + size].view(dtype).reshape(shape)
