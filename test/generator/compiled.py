"""Compiles a model with heedc and runs it through the C ABI (runtime/heed.h), without a process for each input."""
import _ctypes
import ctypes as C
import json
import pathlib
import subprocess

import numpy as np

from heed import abi
from inputs import TYPES
from tools import libgcc, run_tool, tool

NAMES = abi.TYPE_NAMES


class Refused(Exception):
    """The compiler or a call says no: its message."""


def compile_model(source, output, backend, flags=()):
    """Compiles a file to a shared library; the messages. Raises Refused."""
    # Of the reference only the object is heedc's: a third of its time is the linker driver's.
    emitted, kind = (f"{output}.o", "obj") if backend == "reference" else (output, "shared")
    text, code = run_tool([tool("heedc"), source, f"--emit={kind}", "--prefix=drawn", "-o", emitted, f"--backend={backend}", *flags])
    if code:
        raise Refused(f"heedc --backend={backend}: exit code {code}: {text.strip().replace(str(source), 'drawn.heed')}")
    if kind == "obj":
        runtime = pathlib.Path(tool("heedc")).parent.parent / "lib" / "libheed_runtime.a"
        subprocess.run(["ld", "-shared", "-Bsymbolic", "-o", output, emitted, "--whole-archive", runtime, "--no-whole-archive", libgcc()], check=True)
    return text


def write_weights(path, model, arrays):
    """The parameters' arrays as a safetensors file; None if the model has none."""
    tensors = {}
    for x in model.inputs:
        if x.param is not None:
            for turn in np.ndindex(*arrays[x.name].shape[:x.param]):
                tensors["".join([x.name] + [f".{k}" for k in turn])] = (x.type.upper(), np.ascontiguousarray(arrays[x.name][turn]))
    if not tensors:
        return None
    head, data = {}, b""
    for name, (kind, a) in tensors.items():
        head[name] = {"dtype": kind, "shape": list(a.shape), "data_offsets": [len(data), len(data) + a.nbytes]}
        data += a.tobytes()
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def placed(shape, kind, offset):
    """An array that begins so many elements behind a boundary of 64 bytes: a caller's may begin at any."""
    count = int(np.prod(shape, dtype=int))
    raw = np.empty((count + offset) * np.dtype(kind).itemsize + 64, np.uint8)
    first = -raw.ctypes.data % 64 + offset * np.dtype(kind).itemsize
    return raw[first:first + count * np.dtype(kind).itemsize].view(kind).reshape(shape)


class Compiled:
    """An open library. Inputs by name."""

    def __init__(self, file, threads=1, target=None, weights=None):
        self.library = C.CDLL(str(file))
        self.library.heed_last_error.restype = C.c_char_p
        self.library.heed_find_signature.restype = C.POINTER(abi.Signature)
        desc = C.c_void_p(C.addressof(C.c_char.in_dll(self.library, "drawn_model")))
        self.signature = self.library.heed_find_signature(desc, None).contents
        self.handle = C.c_void_p()
        self.calls = 0
        options = abi.Options(threads=threads, target=target)
        if weights:
            names = (C.c_char_p * 1)(str(weights).encode())
            options.weights, options.numWeights = names, 1
        if self.library.heed_open_version(abi.ABI_VERSION, desc, C.byref(options), C.byref(self.handle)):
            raise Refused("heed_open: " + self.error())

    def error(self):
        return self.library.heed_last_error(self.handle).decode()

    def __call__(self, arrays):
        """The results in order."""
        s = self.signature
        self.calls += 1
        offset = self.calls % 2
        kept = []
        inputs, outputs = (abi.Buffer * max(1, s.numInputs))(), (abi.Buffer * max(1, s.numOutputs))()
        for b in [*inputs, *outputs]:
            b.size = C.sizeof(abi.Buffer)
        for b, info in zip(inputs, (x.contents for x in s.inputs[:s.numInputs])):
            given = arrays[info.name.decode()]
            a = placed(given.shape, given.dtype, offset)
            a[...] = given
            kept.append(a)
            b.data, b.type, b.rank = a.ctypes.data, info.type, a.ndim
            b.shape[:a.ndim] = a.shape
        counts = C.c_size_t(s.numInputs), C.c_size_t(s.numOutputs)
        if self.library.heed_output_shapes(self.handle, None, inputs, counts[0], outputs, counts[1]):
            raise Refused("a call: " + self.error())
        results = []
        for b in outputs[:s.numOutputs]:
            # What nobody writes is seen: NaN, or a number that no model makes.
            kind = TYPES[NAMES[b.type]]
            r = placed(b.shape[:b.rank], kind, offset)
            r[...] = np.nan if np.dtype(kind).kind == "f" else 0xFFFF if NAMES[b.type] == "bf16" else 77
            b.data = r.ctypes.data
            results.append((r, NAMES[b.type]))
        if self.library.heed_run(self.handle, None, inputs, counts[0], outputs, counts[1], None):
            raise Refused("a run: " + self.error())
        return results

    def close(self):
        self.library.heed_close(self.handle)
        _ctypes.dlclose(self.library._handle)
