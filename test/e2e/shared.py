# RUN: %python %s %heed_bin %heed_src %t
# Python is no sanitized program, so it could not load the runtime.
# UNSUPPORTED: asan
"""--emit=shared through ctypes: two libraries in one process, run from two threads, and what they export."""
import pathlib
import subprocess
import sys
import threading

import numpy as np

from capi import Buffer, Library, buffers
from runs import expect, finish

heedc, source = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder = pathlib.Path(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)


class Model(Library):
    def __init__(self, file, prefix, threads):
        super().__init__(file, prefix, threads=threads)
        expect(self.status == 0, f"heed_open: {self.status}: {self.error()}")

    def __call__(self, *arrays):
        """The status, and the result if it is 0."""
        inputs, output = buffers(*arrays), (Buffer * 1)(Buffer())
        status = self.shapes(inputs, output)
        if status:
            return status, None
        result = np.full(output[0].shape[:output[0].rank], np.nan, np.float32)
        output[0].data = result.ctypes.data
        return self.run(inputs, output), result


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
