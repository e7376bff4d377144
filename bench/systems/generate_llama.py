"""llama.cpp: generation with its library, built from source by bench/setup, behind the functions of bench/llama/generate.h."""
import ctypes as C
import os

import numpy as np

import gguf
from systems.ggml import BUILT

LIBRARY = os.path.join(BUILT, "..", "libgenerate.so")
IDS = np.ctypeslib.ndpointer(np.int32, flags="C")


def file_of(folder):
    """The checkpoint as GGUF, written beside its tensors when it is first asked for."""
    path, source = os.path.join(folder, "model.gguf"), os.path.join(folder, "model.safetensors")
    if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(source):
        gguf.write(folder, path + ".part")
        os.replace(path + ".part", path)
    return path


def halves(case):
    """Keys and values in f16 where the weights have 16 bits, as its programs keep them."""
    return int(case["type"] != "f32")


class Generation:

    def __init__(self, library, model, case, ids, threads):
        self.library, self.ids, self.vocabulary = library, np.ascontiguousarray(ids), library.generate_vocabulary(model)
        self.handle = library.generate_open(model, *ids.shape, case["new"], halves(case), threads)
        if not self.handle:
            raise MemoryError("llama.cpp gives no context")

    def check(self, failed):
        if failed:
            raise RuntimeError("llama_decode failed")

    def chosen(self):
        return np.ctypeslib.as_array(self.library.generate_chosen(self.handle), (len(self.ids),)).copy()

    def prefill(self):
        self.check(self.library.generate_prefill(self.handle, self.ids))
        self.first = self.chosen()

    def back(self):
        self.check(self.library.generate_back(self.handle, self.first))

    def step(self):
        self.check(self.library.generate_step(self.handle))

    def close(self):
        self.library.generate_close(self.handle)


class System:
    name = "llama.cpp"

    def __init__(self, threads):
        self.threads, self.library = threads, C.CDLL(LIBRARY)
        for function, result, arguments in (
                ("load", C.c_void_p, [C.c_char_p]), ("unload", None, [C.c_void_p]), ("vocabulary", C.c_int32, [C.c_void_p]),
                ("open", C.c_void_p, [C.c_void_p] + 5 * [C.c_int]), ("close", None, [C.c_void_p]), ("prefill", C.c_int, [C.c_void_p, IDS]),
                ("step", C.c_int, [C.c_void_p]), ("back", C.c_int, [C.c_void_p, IDS]), ("chosen", C.POINTER(C.c_int32), [C.c_void_p])):
            found = getattr(self.library, "generate_" + function)
            found.restype, found.argtypes = result, arguments

    def version(self):
        base = C.CDLL(os.path.join(BUILT, "libggml-base.so"))
        base.ggml_version.restype = C.c_char_p
        return f"llama-cpp-python 0.3.36's, ggml {base.ggml_version().decode()}"

    def ways(self, case):
        return ["llama.cpp"]

    def load(self, case, way):
        model = self.library.generate_load(file_of(case["folder"]).encode())
        if not model:
            raise RuntimeError("llama.cpp cannot read the model")
        return model

    def unload(self, model):
        self.library.generate_unload(model)

    def open(self, model, case, way, ids):
        return Generation(self.library, model, case, ids, self.threads)
