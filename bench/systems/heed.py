"""Heed: the case's shared library through its C interface."""
import ctypes as C

import numpy as np

MAX_RANK = 16
TYPES = {1: np.float32, 6: np.int32, 8: np.bool_}
CODES = {np.dtype(t): code for code, t in TYPES.items()}


class Buffer(C.Structure):
    _fields_ = [("size", C.c_size_t), ("data", C.c_void_p), ("type", C.c_int32), ("rank", C.c_int32), ("deviceType", C.c_int32),
                ("deviceNumber", C.c_int32), ("byteOffset", C.c_uint64), ("strides", C.POINTER(C.c_int64)), ("shape", C.c_int64 * MAX_RANK)]


class TensorInfo(C.Structure):
    _fields_ = [("size", C.c_size_t), ("name", C.c_char_p), ("type", C.c_int32), ("rank", C.c_int32), ("extents", C.c_void_p),
                ("sizes", C.c_void_p), ("isScalar", C.c_int32), ("hasDefault", C.c_int32), ("defaultReal", C.c_double),
                ("defaultInteger", C.c_int64)]


class Signature(C.Structure):
    _fields_ = [("size", C.c_size_t), ("entry", C.c_char_p), ("numInputs", C.c_int32), ("numOutputs", C.c_int32),
                ("inputs", C.POINTER(C.POINTER(TensorInfo))), ("outputs", C.POINTER(C.POINTER(TensorInfo)))]


class Options(C.Structure):
    _fields_ = [("size", C.c_size_t), ("weights", C.c_void_p), ("numWeights", C.c_size_t), ("weightsData", C.c_void_p),
                ("numWeightsData", C.c_size_t), ("findWeight", C.c_void_p), ("findWeightUser", C.c_void_p),
                ("copyWeights", C.c_int32), ("convert", C.c_int32), ("threads", C.c_int32), ("wait", C.c_int32),
                ("profile", C.c_int32), ("pool", C.c_void_p), ("parallelFor", C.c_void_p), ("parallelForUser", C.c_void_p),
                ("allocator", C.c_void_p), ("memoryLimit", C.c_int64), ("log", C.c_void_p), ("logUser", C.c_void_p),
                ("target", C.c_char_p)]


def aligned(shape, dtype):
    """An array whose data begin at 64 bytes, as those of the other systems do."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + size].view(dtype).reshape(shape)


def buffer(array):
    b = Buffer(size=C.sizeof(Buffer), data=array.ctypes.data, type=CODES[array.dtype], rank=array.ndim)
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
        # Workers watch between runs, as those of the other systems do.
        options = Options(size=C.sizeof(Options), weights=C.cast(files, C.c_void_p), numWeights=1 if case["weights_file"] else 0,
                          threads=self.threads, wait=1)
        desc = C.c_void_p.in_dll(library, case["prefix"] + "_model")

        def check(status):
            if status:
                raise RuntimeError(library.heed_last_error(model).decode())

        check(library.heed_open_version(3, C.byref(desc), C.byref(options), C.byref(model)))
        signature = library.heed_find_signature(C.byref(desc), None).contents
        arrays = []
        for k in range(signature.numInputs):
            given = inputs[signature.inputs[k].contents.name.decode()]
            arrays.append(aligned(given.shape, given.dtype))
            arrays[-1][...] = given
        ins = (Buffer * len(arrays))(*map(buffer, arrays))
        outs = (Buffer * signature.numOutputs)()
        for b in outs:
            b.size = C.sizeof(Buffer)
        check(library.heed_output_shapes(model, None, ins, len(ins), outs, len(outs)))
        results = [aligned(tuple(b.shape[:b.rank]), TYPES[b.type]) for b in outs]
        for b, result in zip(outs, results):
            b.data = result.ctypes.data
        heed_run, arguments = library.heed_run, (model, None, ins, C.c_size_t(len(ins)), outs, C.c_size_t(len(outs)), None)

        def run():
            if heed_run(*arguments):
                raise RuntimeError(library.heed_last_error(model).decode())

        run.keep = arrays, results  # only their addresses went into the buffers
        run.close = lambda: library.heed_close(model)
        return run, lambda: results[0]
