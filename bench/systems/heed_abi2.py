"""Libraries of builds whose C interface has version 2, for ab.py alone: an old build beside a new one.

To be deleted when no such build is compared with any more."""
import ctypes as C

import numpy as np

from heed.arrays import aligned

MAX_RANK = 16
TYPES = {1: np.float32, 6: np.int32, 8: np.bool_}
CODES = {np.dtype(t): code for code, t in TYPES.items()}


class Buffer(C.Structure):
    _fields_ = [("data", C.c_void_p), ("type", C.c_int32), ("rank", C.c_int32), ("shape", C.c_int64 * MAX_RANK)]


class TensorInfo(C.Structure):
    _fields_ = [("name", C.c_char_p), ("type", C.c_int32), ("rank", C.c_int32), ("extents", C.POINTER(C.c_char_p)),
                ("sizes", C.POINTER(C.c_int64)), ("isScalar", C.c_int32), ("hasDefault", C.c_int32),
                ("defaultReal", C.c_double), ("defaultInteger", C.c_int64)]


class Signature(C.Structure):
    _fields_ = [("entry", C.c_char_p), ("numInputs", C.c_int32), ("numOutputs", C.c_int32),
                ("inputs", C.POINTER(TensorInfo)), ("outputs", C.POINTER(TensorInfo))]


class Options(C.Structure):
    _fields_ = [("weights", C.POINTER(C.c_char_p)), ("numWeights", C.c_size_t), ("threads", C.c_int32),
                ("convert", C.c_int32), ("profile", C.c_int32), ("target", C.c_char_p)]


def buffer(array):
    b = Buffer(array.ctypes.data, CODES[array.dtype], array.ndim)
    b.shape[:array.ndim] = array.shape
    return b


class System:
    name = "heed"

    def __init__(self, threads):
        self.threads, self.libraries = threads, {}

    def version(self):
        return "this checkout"

    def variants(self, case, inputs, weights):
        """One way only: what heedc made of the case."""
        return {"heed": lambda: self.open(case, inputs)}

    def open(self, case, inputs):
        library = C.CDLL(case["library"])
        library.heed_find_signature.restype = C.POINTER(Signature)
        library.heed_last_error.restype = C.c_char_p
        model, files = C.c_void_p(), (C.c_char_p * 1)((case["weights_file"] or "").encode())
        options = Options(files, 1 if case["weights_file"] else 0, self.threads)
        desc = C.c_void_p.in_dll(library, case["prefix"] + "_model")

        def check(status):
            if status:
                raise RuntimeError(library.heed_last_error(model).decode())

        check(library.heed_open(C.byref(desc), C.byref(options), C.byref(model)))
        signature = library.heed_find_signature(C.byref(desc), None).contents
        arrays = []
        for k in range(signature.numInputs):
            given = inputs[signature.inputs[k].name.decode()]
            arrays.append(aligned(given.shape, given.dtype))
            arrays[-1][...] = given
        ins = (Buffer * len(arrays))(*map(buffer, arrays))
        outs = (Buffer * signature.numOutputs)()
        check(library.heed_output_shapes(model, None, ins, len(ins), outs, len(outs)))
        results = [aligned(tuple(b.shape[:b.rank]), TYPES[b.type]) for b in outs]
        for b, result in zip(outs, results):
            b.data = result.ctypes.data
        heed_run, arguments = library.heed_run, (model, None, ins, C.c_size_t(len(ins)), outs, C.c_size_t(len(outs)))

        def run():
            if heed_run(*arguments):
                raise RuntimeError(library.heed_last_error(model).decode())

        run.keep = arrays, results  # only their addresses went into the buffers
        run.close = lambda: library.heed_close(model)
        return run, lambda: results[0]
