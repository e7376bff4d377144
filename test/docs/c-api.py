"""docs/c-api.md: its table names every function of heed.h and generate.h, its program compiles without warnings and runs, that of generation
compiles.

RUN: rm -rf %t && mkdir -p %t && %python %s %heed_src %heed_bin/../lib/libheed_runtime.a %cc %t
The program is linked without the sanitizer that the runtime would want.
UNSUPPORTED: asan
"""
import glob
import os
import re
import sys

import numpy as np

import safetensors_file
from runs import expect, finish, run

source, library, compiler, folder = sys.argv[1:]
text = open(os.path.join(source, "docs/c-api.md")).read()
header = "".join(open(os.path.join(source, "runtime", name)).read() for name in ("heed.h", "states.h", "generate.h"))
functions = set(re.findall(r"\b(heed_[a-z_]+)\((?!\*)", re.sub(r"/\*.*?\*/", "", header, flags=re.S)))
table = set(re.findall(r"`(heed_[a-z_]+)`", "\n".join(line for line in text.splitlines() if line.startswith("| `"))))
expect(len(functions) > 15 and functions == table, f"the headers and the table differ: {functions ^ table}")

program = os.path.join(folder, "example.c")
with open(program, "w") as file:
    file.write(re.search(r"```c\n(.*?)```", text, re.S).group(1))
generation = os.path.join(folder, "generation.c")
with open(generation, "w") as file:
    file.write(re.search(r"```c\n(#include \"generate.h\".*?)```", text, re.S).group(1))
done = run(compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{source}/runtime", "-c", generation, "-o", os.path.join(folder, "generation.o"))
expect(done.returncode == 0, done.stderr)
halide = glob.glob(os.path.join(source, ".venv/lib/python3*/site-packages/halide/include"))[0]
example = os.path.join(folder, "example")
done = run(compiler, "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{source}", f"-I{source}/runtime",
           f"-isystem{halide}", program, f"{source}/test/runtime/Inputs/fake_model.c", library, "-lm", "-lpthread", "-o", example)
expect(done.returncode == 0, done.stderr)
weights = os.path.join(folder, "w.safetensors")
safetensors_file.write(weights, {"table": np.arange(8, dtype="f4").reshape(2, 4), "layer.1.bias": np.ones(4, "f4"),
                                 "layer.2.bias": np.ones(4, "f4")})
done = run(example, weights)
expect(done.stdout == "4 25, 2 rows\n", f"{done.stdout!r} {done.stderr!r}")
done = run(example)
expect(done.returncode == 1 and "has 2 parameters: expected a weights file" in done.stderr, f"without weights: {done.stderr!r}")
finish()
