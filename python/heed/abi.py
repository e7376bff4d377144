"""heed.h in ctypes: structs, functions, words."""
import ctypes as C

ABI_VERSION = 3
MAX_RANK = 16
DEVICE_CPU, DEVICE_CUDA, DEVICE_CUDA_HOST, DEVICE_OPENCL, DEVICE_CUDA_MANAGED = 1, 2, 3, 4, 13

F32, F16, BF16, I8, I16, I32, I64, BOOL, U8, F64 = range(1, 11)
TYPE_NAMES = {F32: "f32", F16: "f16", BF16: "bf16", I8: "i8", I16: "i16", I32: "i32", I64: "i64", BOOL: "bool", U8: "u8", F64: "f64"}


class Sized(C.Structure):
    """A struct that begins with its size."""

    def __init__(self, **fields):
        super().__init__(size=C.sizeof(type(self)), **fields)


class Buffer(Sized):
    _fields_ = [("size", C.c_size_t), ("data", C.c_void_p), ("type", C.c_int32), ("rank", C.c_int32), ("deviceType", C.c_int32),
                ("deviceNumber", C.c_int32), ("byteOffset", C.c_uint64), ("strides", C.POINTER(C.c_int64)),
                ("shape", C.c_int64 * MAX_RANK)]


class TensorInfo(C.Structure):
    _fields_ = [("size", C.c_size_t), ("name", C.c_char_p), ("type", C.c_int32), ("rank", C.c_int32),
                ("extents", C.POINTER(C.c_char_p)), ("sizes", C.POINTER(C.c_int64)), ("isScalar", C.c_int32), ("hasDefault", C.c_int32),
                ("defaultReal", C.c_double), ("defaultInteger", C.c_int64)]


class Signature(C.Structure):
    _fields_ = [("size", C.c_size_t), ("entry", C.c_char_p), ("numInputs", C.c_int32), ("numOutputs", C.c_int32),
                ("inputs", C.POINTER(C.POINTER(TensorInfo))), ("outputs", C.POINTER(C.POINTER(TensorInfo)))]


FindWeight = C.CFUNCTYPE(C.c_int32, C.c_void_p, C.c_char_p, C.POINTER(Buffer))


class Options(Sized):
    _fields_ = [("size", C.c_size_t), ("weights", C.POINTER(C.c_char_p)), ("numWeights", C.c_size_t), ("weightsData", C.c_void_p),
                ("numWeightsData", C.c_size_t), ("findWeight", FindWeight), ("findWeightUser", C.c_void_p), ("copyWeights", C.c_int32),
                ("convert", C.c_int32), ("threads", C.c_int32), ("wait", C.c_int32), ("profile", C.c_int32), ("pool", C.c_void_p),
                ("parallelFor", C.c_void_p), ("parallelForUser", C.c_void_p), ("allocator", C.c_void_p), ("memoryLimit", C.c_int64),
                ("log", C.c_void_p), ("logUser", C.c_void_p), ("target", C.c_char_p), ("packed", C.c_char_p), ("device", C.c_int32),
                ("context", C.c_void_p)]


class KernelProfile(Sized):
    _fields_ = [("size", C.c_size_t), ("kernel", C.c_char_p), ("calls", C.c_int64), ("seconds", C.c_double), ("flops", C.c_double),
                ("bytes", C.c_double), ("pairs", C.c_int64)]


class MemoryUse(Sized):
    _fields_ = [("size", C.c_size_t), ("weights", C.c_int64), ("copies", C.c_int64), ("buffers", C.c_int64)]


class Dim(C.Structure):
    _fields_ = [("name", C.c_char_p), ("extent", C.c_int64)]


class ParamInfo(C.Structure):
    _fields_ = [("size", C.c_size_t), ("names", C.POINTER(C.c_char_p)), ("numNames", C.c_int32), ("numIndices", C.c_int32),
                ("indexBounds", C.POINTER(C.c_int64)), ("type", C.c_int32), ("rank", C.c_int32), ("extents", C.POINTER(C.c_char_p)),
                ("sizes", C.POINTER(C.c_int64))]


class Sampling(Sized):
    _fields_ = [("size", C.c_size_t), ("temperature", C.c_double), ("topK", C.c_int64), ("topP", C.c_double), ("minP", C.c_double),
                ("repetitionPenalty", C.c_double), ("seed", C.c_uint64), ("stop", C.POINTER(C.c_int32)), ("numStop", C.c_size_t),
                ("noRepeatNgram", C.c_int64), ("badWords", C.POINTER(C.c_int32)), ("numBadWords", C.c_size_t), ("minLength", C.c_int64), ("minNew", C.c_int64),
                ("forcedBos", C.POINTER(C.c_int32)), ("numForcedBos", C.c_size_t), ("forcedEos", C.POINTER(C.c_int32)), ("numForcedEos", C.c_size_t),
                ("suppress", C.POINTER(C.c_int32)), ("numSuppress", C.c_size_t), ("beginSuppress", C.POINTER(C.c_int32)), ("numBeginSuppress", C.c_size_t),
                ("maxNew", C.c_int64)]


class GenerationOptions(Sized):
    _fields_ = [("size", C.c_size_t), ("entry", C.c_char_p), ("state", C.c_void_p), ("maxNew", C.c_int64),
                ("sampling", C.POINTER(Sampling)), ("rowIds", C.POINTER(C.c_uint64)), ("past", C.POINTER(Buffer)), ("beams", C.c_int64),
                ("lengthPenalty", C.c_double), ("cancel", C.c_void_p), ("earlyStopping", C.c_int32)]


# Result, arguments.
FUNCTIONS = {
    "heed_status_name": (C.c_char_p, [C.c_int]),
    "heed_open_version": (C.c_int, [C.c_int32, C.c_void_p, C.POINTER(Options), C.POINTER(C.c_void_p)]),
    "heed_open_shared": (C.c_int, [C.c_void_p, C.c_int32, C.POINTER(C.c_void_p)]),
    "heed_save_packed": (C.c_int, [C.c_void_p, C.c_char_p]),
    "heed_close": (None, [C.c_void_p]),
    "heed_threads_open": (C.c_void_p, [C.c_void_p, C.c_int32, C.c_int32]),
    "heed_threads_close": (None, [C.c_void_p]),
    "heed_num_entries": (C.c_size_t, [C.c_void_p]),
    "heed_entry_signature": (C.POINTER(Signature), [C.c_void_p, C.c_size_t]),
    "heed_model_name": (C.c_char_p, [C.c_void_p]),
    "heed_output_shapes_in": (C.c_int, [C.c_void_p, C.c_char_p, C.POINTER(Buffer), C.c_size_t, C.POINTER(Buffer), C.c_size_t, C.c_void_p]),
    "heed_num_states": (C.c_size_t, [C.c_void_p]),
    "heed_state_info": (C.POINTER(TensorInfo), [C.c_void_p, C.c_size_t]),
    "heed_state_open": (C.c_int, [C.c_void_p, C.POINTER(Dim), C.c_size_t, C.POINTER(C.c_void_p)]),
    "heed_state_close": (None, [C.c_void_p]),
    "heed_state_reset": (C.c_int, [C.c_void_p]),
    "heed_state_copy": (C.c_int, [C.c_void_p, C.c_void_p]),
    "heed_state_get": (C.c_int, [C.c_void_p, C.c_char_p, C.POINTER(Buffer)]),
    "heed_state_set": (C.c_int, [C.c_void_p, C.c_char_p, C.POINTER(Buffer)]),
    "heed_state_trim": (C.c_int, [C.c_void_p, C.c_char_p, C.POINTER(Buffer)]),
    "heed_state_permute": (C.c_int, [C.c_void_p, C.c_char_p, C.POINTER(C.c_int64), C.c_size_t]),
    "heed_state_save": (C.c_int, [C.c_void_p, C.c_char_p]),
    "heed_state_load": (C.c_int, [C.c_void_p, C.c_char_p]),
    "heed_state_bytes": (C.c_int64, [C.c_void_p]),
    "heed_state_last_error": (C.c_char_p, [C.c_void_p]),
    "heed_run": (C.c_int, [C.c_void_p, C.c_char_p, C.POINTER(Buffer), C.c_size_t, C.POINTER(Buffer), C.c_size_t, C.c_void_p]),
    "heed_last_error": (C.c_char_p, [C.c_void_p]),
    "heed_target": (C.c_char_p, [C.c_void_p]),
    "heed_num_threads": (C.c_int32, [C.c_void_p]),
    "heed_profile": (C.c_size_t, [C.c_void_p, C.POINTER(KernelProfile), C.c_size_t]),
    "heed_profile_reset": (None, [C.c_void_p]),
    "heed_memory": (C.c_int, [C.c_void_p, C.POINTER(MemoryUse)]),
    "heed_num_params": (C.c_size_t, [C.c_void_p]),
    "heed_param": (C.POINTER(ParamInfo), [C.c_void_p, C.c_size_t]),
    "heed_can_generate": (C.c_int32, [C.POINTER(Signature)]),
    "heed_generation_open": (C.c_int, [C.c_void_p, C.POINTER(GenerationOptions), C.POINTER(Buffer), C.c_size_t, C.POINTER(C.c_void_p)]),
    "heed_generation_close": (None, [C.c_void_p]),
    "heed_generation_step": (C.c_int, [C.c_void_p, C.POINTER(C.c_int32), C.POINTER(C.c_int64)]),
    "heed_generation_tokens": (C.c_int, [C.c_void_p, C.c_int64, C.POINTER(C.c_int32), C.POINTER(C.c_double)]),
    "heed_generation_last_error": (C.c_char_p, [C.c_void_p]),
}


def bind(library):
    """Declares heed.h's functions of a loaded library; a name that it lacks is returned."""
    for name, (result, arguments) in FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            return name
        function.restype, function.argtypes = result, arguments
    return None
