# RUN: %python %s %heed_bin %heed_src %t %cc
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
"""docs/examples/cpp: heed.hpp compiles without a warning as C++17 and C++20, strided inputs and outputs are what NumPy says, errors
are exceptions. With the address sanitizer of the program, nothing is left behind."""
import pathlib
import subprocess
import sys

import numpy as np

from runs import expect, finish, run

heedc, source = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder, cc = pathlib.Path(sys.argv[3]), sys.argv[4]
folder.mkdir(parents=True, exist_ok=True)
for kind, file in (("lib", "libsdpa.a"), ("header", "sdpa.h")):
    subprocess.run([heedc, source / "models/core/sdpa.heed", "--emit=" + kind, "-o", folder / file], check=True)
b, n, h, e = 2, 37, 4, 16
qkv = (np.arange(b * n * 3 * h * e) * 37 % 101 / 50 - 1).reshape(b, n, 3, h, e)
q, k, v = qkv.transpose(2, 0, 3, 1, 4)
s = np.einsum("bhie,bhje->bhij", q, k) / np.sqrt(e)
p = np.exp(s - s.max(axis=-1, keepdims=True))
want = np.einsum("bhij,bhjf->bihf", p / p.sum(axis=-1, keepdims=True), v)
for standard in ("c++17", "c++20"):
    done = run(cc, "-x", "c++", f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsanitize=address,undefined", "-I", folder,
               "-I", source / "runtime", source / "docs/examples/cpp/attend.cpp", "-x", "none", folder / "libsdpa.a", "-lstdc++", "-lm",
               "-lpthread", "-o", folder / "attend")
    expect(done.returncode == 0, f"{standard}: {done.stderr}")
    done = run(folder / "attend")
    lines = done.stdout.splitlines()
    expect(done.returncode == 0 and len(lines) == want.size + 3, f"{standard}: {done.stderr}")
    got = np.array([float(x) for x in lines[:-3]]).reshape(want.shape)
    expect(np.abs(got - want).max() < 1e-5, f"{standard}: {np.abs(got - want).max()}")
    for line, text in zip(lines[-3:], ("argument: entry 'sdpa' has 3 inputs and 1 outputs, found 2 and 1", "shape: ",
                                       "argument: expected 0 to 4096 threads, found -1")):
        expect(line.startswith(text), f"{line!r}, expected {text!r}")
finish()
