"""Runs the kernels of a model without its host code: heed-opt, heed-halide, and each `halide.call` through ctypes.

The host part of the text is read line by line: dims, empty tensors, constants, products, views, calls. What else host code may hold is an error here.
"""
import ctypes as C
import glob
import os
import operator
import re
import subprocess

import numpy as np

TYPES = {"f32": np.float32, "f64": np.float64, "i1": np.bool_, "i8": np.int8, "i32": np.int32, "i64": np.int64}
OPERATIONS = {"addi": operator.add, "subi": operator.sub, "muli": operator.mul, "divui": operator.floordiv, "divsi": operator.floordiv, "maxui": max, "maxsi": max, "minsi": min, "minui": min,
              "remui": operator.mod, "andi": operator.and_, "ori": operator.or_, "cmpi eq,": operator.eq,
              "cmpi uge,": operator.ge, "cmpi sle,": operator.le, "cmpi ule,": operator.le, "cmpi ne,": operator.ne}


class Dim(C.Structure):
    _fields_ = [("min", C.c_int32), ("extent", C.c_int32), ("stride", C.c_int32), ("flags", C.c_uint32)]


class Buffer(C.Structure):  # halide_buffer_t
    _fields_ = [("device", C.c_uint64), ("interface", C.c_void_p), ("host", C.c_void_p), ("flags", C.c_uint64),
                ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16), ("dimensions", C.c_int32),
                ("dim", C.POINTER(Dim)), ("padding", C.c_void_p)]


def buffer(array):
    b = Buffer(host=array.ctypes.data, dimensions=array.ndim, lanes=1)
    b.code, b.bits = (1, 1) if array.dtype == np.bool_ else ("iuf".index(array.dtype.kind), 8 * array.itemsize)
    b.dim = (Dim * max(array.ndim, 1))()
    stride = 1
    for k, extent in enumerate(reversed(array.shape)):
        b.dim[k] = Dim(0, extent, stride, 0)
        stride *= extent
    b.array = array
    return b

# Of the runtime: what kernels call that give up.
HOOK = "int gave_up; float heed_kernel_gives_up(void *context, int yes) { gave_up |= yes; return 1; }"


class Model:
    """`text` is IR before `passes`; objects go to `folder`."""

    def __init__(self, text, folder, passes=("--attn-form-kernels", "--attn-stream-attention", "--attn-to-halide", "--cse"), checks=True):
        os.makedirs(folder, exist_ok=True)
        done = subprocess.run(["heed-opt", *passes], input=text, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        pipelines, self.host, inside = [], [], False
        for line in done.stdout.splitlines():
            inside = inside or line.startswith("  halide.pipeline")
            (pipelines if inside or line.startswith("#") else self.host).append(line)
            inside = inside and line != "  }"
        source = os.path.join(folder, "kernels.mlir")
        with open(source, "w") as f:
            f.write("\n".join(pipelines))
        subprocess.run(["heed-halide", source, "-o", folder, "-runtime", *["-checks"] * checks],
                       check=True)
        library = os.path.join(folder, "kernels.so")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", library, *glob.glob(os.path.join(folder, "*.o")),
                        "-x", "c", "-", "-lm", "-lpthread", "-ldl"], input=HOOK, text=True, check=True)
        self.library = C.CDLL(library)
        self.inputs, name = {}, None  # of each pipeline, by name
        for line in pipelines:
            if m := re.match(r"  halide.pipeline @(\w+)", line):
                name = m[1]
                self.inputs[name] = []
            elif m := re.match(r"    %\w+ = halide.(?:buffer|param) \"(\w+)\"", line):
                self.inputs[name].append(m[1])

    def __call__(self, *arguments):
        """The calls' results. Long: one operation after the other."""
        env, branches = {}, []  # of each scf.if around the line: its value, its result, whether the line's branch is taken
        for line in self.host:
            text = line.strip()
            if text == "} else {":
                branches[-1][2] = not branches[-1][0]
            elif text == "}" and branches:
                branches.pop()
            elif not all(taken for _, _, taken in branches):
                branches += [[False, None, False]] if text.endswith("{") else []
            elif m := re.match(r"(%\w+)(?::\d+)? = scf.if (%\w+) ", text):
                branches.append([env[m[2]], m[1], env[m[2]]])
            elif m := re.match(r"scf.yield (.*) :", text):
                values, name = [env[v] for v in re.findall(r"%\w+(?:#\d+)?", m[1])], branches[-1][1]
                env |= {name: values[0]} | {f"{name}#{k}": value for k, value in enumerate(values)}
            elif m := re.match(r"(%\w+) = arith.(cmpi \w+,|\w+) (%\w+), (%\w+) : (?:index|i1|i32|i64)", text):
                env[m[1]] = OPERATIONS[m[2]](env[m[3]], env[m[4]])
            elif m := re.match(r"(%\w+) = arith.index_cast (%\w+) : ", text):
                env[m[1]] = env[m[2]]
            elif m := re.match(r"(%\w+) = arith.select (%\w+), (%\w+), (%\w+) : (?:index|i64)", text):
                env[m[1]] = env[m[3] if env[m[2]] else m[4]]
            elif text.startswith("func.func"):
                env = dict(zip(re.findall(r"(%arg\d+):", text), arguments))
            elif m := re.match(r"(%\w+) = arith.constant (\S+) : \w+", text):
                env[m[1]] = float(m[2]) if "." in m[2] else int(m[2])
            elif m := re.match(r"(%\w+) = arith.constant (true|false)$", text):
                env[m[1]] = m[2] == "true"
            elif m := re.match(r"(%\w+) = tensor.extract (%\w+)\[(%\w+)\] :", text):
                env[m[1]] = env[m[2]][env[m[3]]]
            elif m := re.match(r"(%\w+) = tensor.dim (%\w+(?:#\d+)?), (%\w+)", text):
                env[m[1]] = env[m[2]].shape[env[m[3]]]
            elif m := re.match(r"(%\w+) = tensor.empty\((.*?)\) : tensor<(.*)>", text):
                sizes = iter(re.findall(r"%\w+", m[2]))
                *dims, kind = m[3].split("x")
                shape = [env[next(sizes)] if d == "?" else int(d) for d in dims]
                # What a kernel forgets to write is no number.
                env[m[1]] = np.full(shape, 7 if kind[0] == "i" else np.nan, TYPES[kind])
            elif m := re.match(r"(%\w+) = tensor.collapse_shape (%\w+) (\[\[.*\]\]) :", text):
                shape = env[m[2]].shape
                groups = [[int(axis) for axis in group.split(",")] for group in re.findall(r"\[([\d, ]+)\]", m[3])]
                env[m[1]] = env[m[2]].reshape([int(np.prod([shape[axis] for axis in group])) for group in groups])
            elif m := re.match(r"(%\w+) = tensor.expand_shape (%\w+) .* output_shape \[(.*?)\] :", text):
                env[m[1]] = env[m[2]].reshape([env[n] if n[0] == "%" else int(n) for n in m[3].split(", ")])
            elif m := re.match(r"(%\w+) = tensor.cast (%\w+) (?:\{.*\} )?:", text):
                env[m[1]] = env[m[2]]
            elif m := re.match(r"(%\w+) = tensor.(extract|insert)_slice (%\w+(?:#\d+)?)(?: into (%\w+(?:#\d+)?))? ?\[(.*?)\] \[(.*?)\] \[", text):
                offsets, sizes = ([env[n] if n[0] == "%" else int(n) for n in part.split(", ")] for part in (m[5], m[6]))
                at = tuple(slice(first, first + size) for first, size in zip(offsets, sizes))
                assert all(first + size <= extent for first, size, extent in zip(offsets, sizes, env[m[4] or m[3]].shape)), text
                if m[2] == "extract":
                    env[m[1]] = np.ascontiguousarray(env[m[3]][at])
                else:
                    env[m[1]] = env[m[4]].copy()
                    env[m[1]][at] = env[m[3]]
            elif m := re.match(r"(%\w+)(?::\d+)? = halide.call @(\w+)\((.*?)\)(?: with\((.*?)\))? outs\((.*?) :", text):
                outs = [env[v] for v in re.findall(r"%\w+", m[5])]
                passed = {name: env[v] for name, v in re.findall(r'"(\w+)" = (%\w+(?:#\d+)?)', m[4] or "")}
                others = [name for name in self.inputs[m[2]] if name not in passed]
                passed |= zip(others, (env[v] for v in re.findall(r"%\w+(?:#\d+)?", m[3].split(" : ")[0])), strict=True)
                gaveUp = C.c_int.in_dll(self.library, "gave_up")
                gaveUp.value = 0
                self.call(m[2], [passed[name] for name in self.inputs[m[2]]], outs)
                if gaveUp.value:
                    other = re.search(r"\) else @(\w+) ", text)[1]
                    self.call(other, [passed[name] for name in self.inputs[other]], outs)
                env[m[1]] = outs[0]
                env |= {f"{m[1]}#{k}": out for k, out in enumerate(outs)}
            elif m := re.match(r"return (.*) :", text):
                results = [env[v] for v in re.findall(r"%\w+(?:#\d+)?", m[1])]
                return results[0] if len(results) == 1 else results
            else:
                assert text in ("", "}", "module {") or text[0] == "#", "host code: " + text

    def call(self, name, inputs, outs):
        if all(out.size == 0 for out in outs):  # the host does not call a kernel that writes nothing
            return
        arrays = [buffer(np.ascontiguousarray(v)) if isinstance(v, np.ndarray) else None for v in inputs]
        scalars = [C.c_float(v) if isinstance(v, float) else C.c_int32(v) if a is None else None
                   for v, a in zip(inputs, arrays)]
        results = [buffer(out) for out in outs]
        code = getattr(self.library, name)(None, *[s if a is None else C.byref(a) for s, a in zip(scalars, arrays)],
                                           *map(C.byref, results))
        assert code == 0, f"{name} returned {code}"
