# RUN: %python %s %heed_bin %heed_src %t
# Python is no sanitized program, so it could not load the runtime.
# UNSUPPORTED: asan
"""--emit=shared through ctypes: two libraries in one process, run from two threads, and what they export."""
import ctypes as C
import pathlib
import subprocess
import sys
import threading

import numpy as np

from runs import expect, finish

heedc, source = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder = pathlib.Path(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)


class Buffer(C.Structure):
    _fields_ = [("data", C.c_void_p), ("type", C.c_int32), ("rank", C.c_int32), ("shape", C.c_int64 * 16)]


class Options(C.Structure):
    _fields_ = [("weights", C.c_void_p), ("numWeights", C.c_size_t), ("threads", C.c_int32), ("convert", C.c_int32),
                ("profile", C.c_int32), ("target", C.c_char_p)]


def buffers(*arrays):
    made = (Buffer * len(arrays))()
    for b, a in zip(made, arrays):
        assert a.dtype == np.float32 and a.flags.c_contiguous
        b.data, b.type, b.rank = a.ctypes.data, 1, a.ndim
        b.shape[:a.ndim] = a.shape
    return made


class Model:
    def __init__(self, file, prefix, threads):
        self.library = C.CDLL(str(file))
        self.library.heed_last_error.restype = C.c_char_p
        self.library.heed_model_name.restype = C.c_char_p
        self.desc = C.c_void_p(C.addressof(C.c_char.in_dll(self.library, prefix + "_model")))
        self.handle = C.c_void_p()
        options = Options(threads=threads)
        status = self.library.heed_open(self.desc, C.byref(options), C.byref(self.handle))
        expect(status == 0, f"heed_open: {status}: {self.error()}")

    def error(self):
        return self.library.heed_last_error(self.handle).decode()

    def __call__(self, *arrays):
        """The status, and the result if it is 0."""
        inputs, output = buffers(*arrays), Buffer()
        status = self.library.heed_output_shapes(self.handle, None, inputs, C.c_size_t(len(arrays)), C.byref(output),
                                                 C.c_size_t(1))
        if status:
            return status, None
        result = np.full(output.shape[:output.rank], np.nan, np.float32)
        output.data = result.ctypes.data
        status = self.library.heed_run(self.handle, None, inputs, C.c_size_t(len(arrays)), C.byref(output),
                                       C.c_size_t(1))
        return status, result

    def close(self):
        self.library.heed_close(self.handle)


def attention(q, k, v, causal):
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    s = np.einsum("bhie,bhje->bhij", q, k) / np.sqrt(q.shape[-1])
    if causal:
        s = np.where(np.tri(*s.shape[-2:], s.shape[-1] - s.shape[-2], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return np.einsum("bhij,bhjf->bhif", p / p.sum(axis=-1, keepdims=True), v)


models = []
for name, prefix in (("sdpa", "sdpa"), ("causal-attention", "causal")):
    file = folder / f"lib{prefix}.so"
    subprocess.run([heedc, source / f"models/core/{name}.heed", "--emit=shared", "--prefix=" + prefix, "-o", file],
                   check=True)
    models.append(Model(file, prefix, threads=2))
    listed = subprocess.run(["nm", "-D", "--defined-only", file], check=True, capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in listed.splitlines()]
    expect(prefix + "_model" in names and "heed_run" in names, f"exports: {names}")
    other = [n for n in names if n != prefix + "_model" and not n.startswith("heed_")]
    expect(not other, f"{file.name} exports {other}")
    dynamic = subprocess.run(["readelf", "-d", file], check=True, capture_output=True, text=True).stdout
    expect(f"[{file.name}]" in dynamic and "Halide" not in dynamic, dynamic)
expect(models[0].library.heed_num_threads(models[0].handle) == 2, "threads of the handle")
expect(models[1].library.heed_model_name(models[1].desc) == b"attention", "the model's name")


def use(model, causal, seed):
    random = np.random.default_rng(seed)
    for n, m in ((1, 1), (33, 47), (5, 70), (130, 130)):
        q, k, v = (random.uniform(-1, 1, (2, 3, r, 8)).astype(np.float32) for r in (n, m, m))
        status, got = model(q, k, v)
        want = attention(q, k, v, causal)
        expect(status == 0 and np.abs(got - want).max() <= 1e-5, f"{n} x {m}, causal {causal}: status {status}")


workers = [threading.Thread(target=use, args=(model, k == 1, k)) for k, model in enumerate(models)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()

# Shapes that disagree: HEED_ERROR_SHAPE and a sentence; the handle works on.
a, b = np.zeros((1, 1, 3, 4), np.float32), np.zeros((1, 1, 3, 5), np.float32)
status, _ = models[0](a, b, a)
expect(status == 2 and "4" in models[0].error() and "5" in models[0].error(), f"{status}: {models[0].error()}")
status, got = models[0](a, a, a)
expect(status == 0 and not got.any(), "a run after an error")
for model in models:
    model.close()
finish()
