"""Prototypes in Halide, written by hand before the compiler: run.py --prototypes FOLDER, which holds attn.cpp and decode.cpp.

The programs are built once (into ~/.cache/heed-bench) and asked for an object of the case's sizes; NAME=VALUE settings are theirs.
"""
import ctypes as C
import hashlib
import importlib.util
import os
import subprocess
import tempfile

import numpy as np

from heed.arrays import aligned

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = ("attn.cpp", "decode.cpp")
# decode.cpp only runs what it makes: here it writes its object instead, as attn.cpp can.
OBJECT = ("O.compile_jit(t);", 'if(getenv("OBJ")){O.compile_to_object(getenv("OBJ"),{Q,K,Vv},"attn_k",t);return 0;} O.compile_jit(t);')


class Dimension(C.Structure):
    _fields_ = [("min", C.c_int32), ("extent", C.c_int32), ("stride", C.c_int32), ("flags", C.c_uint32)]


class Buffer(C.Structure):
    """halide_buffer_t."""
    _fields_ = [("device", C.c_uint64), ("interface", C.c_void_p), ("host", C.c_void_p), ("flags", C.c_uint64), ("code", C.c_uint8),
                ("bits", C.c_uint8), ("lanes", C.c_uint16), ("dimensions", C.c_int32), ("dim", C.POINTER(Dimension)), ("padding", C.c_void_p)]


def buffer(array):
    """Innermost axis first; dense."""
    dims, stride = (Dimension * array.ndim)(), 1
    for k, extent in enumerate(reversed(array.shape)):
        dims[k] = Dimension(0, extent, stride, 0)
        stride *= extent
    return Buffer(host=array.ctypes.data, code=2, bits=32, lanes=1, dimensions=array.ndim, dim=dims)


def run(*command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode:
        raise RuntimeError(f"{os.path.basename(command[0])}: {done.stderr.strip()[-300:]}")


class System:
    name = "prototype"

    def __init__(self, threads):
        self.threads, folder = threads, os.environ["HEED_PROTOTYPES"]
        self.texts = {name: open(os.path.join(folder, name), encoding="utf-8").read() for name in SOURCES}
        self.halide = os.path.dirname(importlib.util.find_spec("halide").origin)
        self.hash = hashlib.sha256("".join(self.texts.values()).encode()).hexdigest()[:12]
        self.cache = os.path.join(os.path.expanduser("~"), ".cache", "heed-bench", "prototypes", self.hash)
        os.makedirs(self.cache, exist_ok=True)
        self.libraries = tempfile.TemporaryDirectory()

    def version(self):
        return f"sources {self.hash}, safe and bounded"

    def program(self, source):
        """The built generator."""
        path = os.path.join(self.cache, source.removesuffix(".cpp"))
        if not os.path.exists(path):
            text = self.texts[source]
            with open(path + ".cpp", "w", encoding="utf-8") as file:
                file.write(text if "OBJ" in text else text.replace(*OBJECT))
            lib = os.path.join(self.halide, "lib64")
            run(os.environ.get("CXX", "clang++-22"), "-O2", "-std=c++17", f"-I{self.halide}/include", path + ".cpp", "-o", f"{path}.{os.getpid()}",
                f"-L{lib}", "-lHalide", f"-Wl,-rpath,{lib}", "-lpthread", "-ldl")
            os.replace(f"{path}.{os.getpid()}", path)
        return path

    def variants(self, case, inputs, weights):
        p = case["params"]
        if case["kind"] != "attention" or p["G"] != p["H"] or p["E"] % 16 or "relative" in p or "cap" in p:
            return {}
        if p["N"] == 1 and p["M"] > 1:
            return {"decode": lambda: self.open(p, inputs, "decode.cpp", (p["M"], p["E"], p["B"] * p["H"]), False)}
        if p["mask"] not in ("full", "causal", "window") or p["M"] != p["N"]:
            return {}
        settings = {"CAUSAL": str(int(p["mask"] != "full")), "W": str(p.get("window", 0))}
        sizes = (p["N"], p["E"], p["B"] * p["H"])
        return {"safe": lambda: self.open(p, inputs, "attn.cpp", sizes, False, NOMAX="0", **settings),
                "bounded": lambda: self.open(p, inputs, "attn.cpp", sizes, True, NOMAX="1", **settings)}

    def open(self, p, inputs, source, sizes, bounded, **settings):
        # Kept until the process ends: the loader takes a library for another one whose file is gone and whose place on the disk it got.
        folder = tempfile.mkdtemp(dir=self.libraries.name)
        object_file, library = os.path.join(folder, "attn.o"), os.path.join(folder, "attn.so")
        run(self.program(source), *map(str, sizes), OBJ=object_file, HL_NUM_THREADS=str(self.threads), **settings)
        run(os.environ.get("CC", "clang-22"), "-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", os.path.join(HERE, "prototype_bound.c"),
            object_file, "-o", library, "-lpthread", "-ldl", "-lm")
        lib = C.CDLL(library)
        lib.halide_set_num_threads(self.threads)
        arrays = []
        for name in "qkv":
            given = inputs[name].reshape(-1, p["E"]) if name == "q" and source == "decode.cpp" else inputs[name].reshape(p["B"] * p["H"], -1, p["E"])
            arrays.append(aligned(given.shape, np.float32))
            arrays[-1][...] = given
        y = aligned(arrays[0].shape, np.float32)
        buffers = [buffer(a) for a in (*arrays, y)]
        pointers = [C.byref(b) for b in buffers]
        function, more = lib.attn_k, ()
        if bounded:  # its condition is checked in each call, as the compiler's is
            function = lib.prototype_bounded
            more = (C.c_int64(arrays[0].size // p["E"]), C.c_int64(arrays[1].size // p["E"]), C.c_int32(p["E"]))

        def call():
            if function(*pointers, *more):
                raise RuntimeError("it failed, or its bound on the scores is too large")

        call.keep = arrays, y, buffers, lib  # only their addresses went into the buffers
        return call, lambda: y
