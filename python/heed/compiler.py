"""Finds and runs heedc."""
import json
import math
import os
import re
import shutil
import struct
import subprocess
import tempfile
import warnings

import numpy as np

from heed.errors import Error


class CompileError(Error):
    """heedc refused a model: its message says where, with the line and a caret."""


class CompilerNotFound(Error, FileNotFoundError):
    """There is no heedc."""


def find_heedc():
    """The compiler's path: $HEEDC, or else the heedc on PATH."""
    named = os.environ.get("HEEDC")
    found = shutil.which(named or "heedc")
    if found:
        return found
    raise CompilerNotFound(
        (f"expected a program as $HEEDC, found '{named}'" if named else "heedc is not on PATH, and $HEEDC names none")
        + ": build Heed with 'make' (build/bin/heedc), or install it with 'cmake --install build --prefix ...', "
        "and put its bin folder on PATH or its heedc into $HEEDC")


def literal(value):
    """A Python value as text of a model."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isnan(value):
            raise ValueError("expected a number for a constant, found NaN")
        return repr(value) if math.isfinite(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, str):
        if '"' in value or "\n" in value:
            raise ValueError(f"expected a string without quotes and line breaks for a constant, found {value!r}")
        return f'"{value}"'
    if isinstance(value, (list, tuple, np.ndarray)):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    raise TypeError(f"expected a number, bool, string, list or None for a constant, found {type(value).__name__}")


def is_text(source):
    """Whether a source is a model's text; a file's name has neither line breaks nor braces."""
    return isinstance(source, str) and ("\n" in source or "{" in source)


def paths_of(value):
    """One path or several, as texts."""
    if value is None:
        return []
    return [os.fspath(value)] if isinstance(value, (str, os.PathLike)) else [os.fspath(path) for path in value]


SAFETENSORS = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64", "int8": "I8", "int16": "I16", "int32": "I32",
               "int64": "I64", "uint8": "U8", "bool": "BOOL"}


def write_outline(path, weights):
    """A .safetensors file of the weights' names, types and shapes, without their data (a hole): heedc asks for no more."""
    header, at = {}, 0
    for name, array in weights.items():
        header[name] = {"dtype": SAFETENSORS[array.dtype_name], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)


class Compilation:
    """A source with its options, as heedc is called for it."""

    def __init__(self, source, *, set, weight_files, arrays, model, include, model_dir, target, backend, products, fast_math, unchecked, options):
        self.text, self.arrays = source if is_text(source) else None, arrays
        self.path = "-" if self.text is not None else os.fspath(source)
        self.options = [f"--set={name}={literal(value)}" for name, value in (set or {}).items()]
        self.options += [f"--weights={path}" for path in weight_files]
        self.options += [f"-I{path}" for path in paths_of(include)]
        for option, value in (("model", model), ("model-dir", model_dir), ("target", target), ("backend", backend),
                              ("products", products)):
            if value is not None:
                self.options.append(f"--{option}={os.fspath(value)}")
        self.options += ["--fast-math"] * bool(fast_math) + ["--unchecked"] * bool(unchecked) + list(options)

    def run(self, *options):
        """heedc's standard output and standard error; what it refuses is an exception."""
        with tempfile.TemporaryDirectory(prefix="heed-") as folder:
            outline = os.path.join(folder, "weights.safetensors")
            if self.arrays is not None:
                write_outline(outline, self.arrays)
                options += (f"--weights={outline}",)
            return self._run([find_heedc(), *self.options, *options, "--", self.path])

    def _run(self, command):
        done = subprocess.run(command, input=self.text, stdin=None if self.text is not None else subprocess.DEVNULL,
                              capture_output=True, text=True, encoding="utf-8", errors="replace")
        if done.returncode:
            raise CompileError(done.stderr.strip() or f"heedc ended with {done.returncode}")
        return done.stdout, done.stderr

    def comment(self, name):
        """The comment above the model `name`, without its signs; "" if there is none."""
        text = self.text
        if text is None:
            if not self.path.endswith(".heed"):
                return ""
            with open(self.path, encoding="utf-8", errors="replace") as file:
                text = file.read()
        found = re.search(rf"((?:^[ \t]*#.*\n)+)(?=[ \t]*model[ \t]+{re.escape(name)}\b)", text, re.M)
        return "\n".join(line.strip().lstrip("#").strip() for line in found[1].splitlines()) if found else ""


def compile(source, *, set=None, weights=None, model=None, include=None, model_dir=None, target=None, backend=None,
            products=None, fast_math=False, unchecked=False, options=(), threads=0, convert=False, watch=False):
    """Compiles a model and opens it; returns a Model, to be called with arrays.

    source      a file's name, a model's text (with a line break or a brace in it), or the folder of a Hugging Face checkpoint, which
                has the weights, too, unless others are given
    set         values of constants and dims, {"window": 128}
    weights     a .safetensors file (or several, or an index), or a dict of arrays by name, which are not copied where the model
                reads their type
    model       which model of the file; the last if not given
    include     folders in which imports are looked up
    model_dir   the folder in which config files are looked up
    target      the processor, "x86-64-v3"; "host" if not given
    backend     "halide", or "reference": by definition, slow, in f64, for comparison
    products    "bf16": what meets a bf16 weight in a matrix product is rounded to bf16, and the sum is f32
    fast_math   results may leave the error bounds
    unchecked   no checks of indices that data holds
    options     further options of heedc, a list
    threads     threads of a call; 0: all that the process may use
    convert     weights in f64 are rounded instead of refused
    watch       threads watch for a millisecond for the next call, each on a processor of its own, instead of sleeping

    Raises CompileError with heedc's messages, CompilerNotFound, RunError.
    """
    from heed.model import Library, Model, in_memory
    if weights is None and not is_text(source) and os.path.isdir(source):
        weights = source
    arrays = in_memory(weights) if isinstance(weights, dict) else None
    files = paths_of(weights) if arrays is None else []
    compilation = Compilation(source, set=set, weight_files=files, arrays=arrays, model=model, include=include, model_dir=model_dir,
                              target=target, backend=backend, products=products, fast_math=fast_math, unchecked=unchecked, options=options)
    with tempfile.TemporaryDirectory(prefix="heed-") as folder:
        path = os.path.join(folder, "model.so")
        _, said = compilation.run("--emit=shared", "-o", path)
        library = Library(path)  # the file may go when it is open
    if said.strip():
        warnings.warn(said.strip(), stacklevel=2)
    return Model.of(library, compilation, files, arrays, threads=threads, convert=convert, watch=watch)
