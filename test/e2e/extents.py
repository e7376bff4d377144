# RUN: %python %s %heed_bin %heed_src %t
# Python is no sanitized program, so it could not load the runtime.
# UNSUPPORTED: asan
"""Extents that no memory holds: shapes of results are right or an error, runs on empty arrays of absurd shapes end.
An extent beyond what kernels count is an error that names it and the limit; a program leaves no output then."""
import itertools
import pathlib
import subprocess
import sys

import numpy as np

from capi import Buffer, Library
from runs import expect, expect_error, finish, run

heedc, source = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder = pathlib.Path(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
MODELS = {
    "outer": """model outer(a: f32[N, K], b: f32[M, K]) {
  p[i*M + j] = sum(k) a[i,k] * b[j,k]
  return p
}
""",
    "cube": "model cube(a: f32[N, E], b: f32[M, E], c: f32[K, E]) { return p[(i*M + j)*K + k] = sum(e) a[i,e] * b[j,e] * c[k,e] }",
    "joined": "model joined(a: f32[N, D], b: f32[M, D]) { return y[n:N+M, d] = concat(n)(a[n,d], b[n,d]) }",
    "double": "model double(a: i8[N, D]) { return y[n,d] = a[n,d] + a[n,d] }",
    "static": "model static(a: i8[B]) { return y[n:3000000000, b] = a[b] }",
    "argument": "model argument(a: i8[2147418113, B]) { return y[n, b] = a[n, b] }",
}
for name, text in MODELS.items():
    (folder / f"{name}.heed").write_text(text)
LIMIT = 2147418112  # HEED_MAX_EXTENT
EXTENTS = (0, 1, 3, LIMIT, 2**31 - 1, 2**31, 2**32, 2**40, 2**61, 2**62, 2**63 - 1)


class Model:
    def __init__(self, path):
        file = folder / f"lib{path.stem}.so"
        subprocess.run([heedc, path, "--emit=shared", "--prefix=m", "-o", file], check=True)
        self.library = Library(file, "m")
        expect(self.library.status == 0, f"{path.stem}: heed_open")

    def call(self, function, shapes, data=None):
        """The status and the result's shape; every array is `data`."""
        inputs = (Buffer * len(shapes))(*(Buffer(data, 1, shape) for shape in shapes))
        output = (Buffer * 1)(Buffer(data, 1, self.expected if function == "heed_run" else ()))
        status = (self.library.run if function == "heed_run" else self.library.shapes)(inputs, output)
        return status, tuple(output[0].shape[:output[0].rank])


def fits(shape):
    return np.prod([int(n) for n in shape], dtype=object) * 4 < 2**63 or 0 in shape


def check(name, model, shapes, expected):
    status, found = model.call("heed_output_shapes", shapes)
    what = f"{name}, {shapes}: status {status}, {model.library.error()!r}"
    expect(status in (0, 2, 5), what)
    if not all(fits(shape) for shape in shapes):
        expect(status in (2, 5), what)
    elif any(extent > LIMIT for shape in shapes for extent in shape):
        expect(status == 2 and f"expected at most {LIMIT}" in what, what)
    if status == 0:
        expect(found == expected, f"{what}: {found}, expected {expected}")
    # A result without elements is computed without touching any array.
    if status == 0 and 0 in expected and all(0 in shape for shape in shapes):
        model.expected = expected
        status, _ = model.call("heed_run", shapes)
        expect(status in (0, 2, 5), f"{name}, {shapes}: run: status {status}")


sdpa = Model(source / "models/core/causal-attention.heed")
for n, m, e in itertools.product(EXTENTS, repeat=3):
    check("causal", sdpa, [(1, 1, n, e), (1, 1, m, e), (1, 1, m, 2)], (1, 1, n, 2))
for b, h, n in itertools.product(EXTENTS, repeat=3):
    check("causal", sdpa, [(b, h, n, 0), (b, h, n, 0), (b, h, n, 3)], (b, h, n, 3))

# The extent of the result is a product that may not fit where every array does.
outer = Model(folder / "outer.heed")
for n, m, k in itertools.product(EXTENTS, repeat=3):
    check("outer", outer, [(n, k), (m, k)], (n * m,))
cube = Model(folder / "cube.heed")
status, _ = cube.call("heed_output_shapes", [(2**30, 0)] * 3)
expect(status == 5 and "is too large" in cube.library.error(), f"2^90: status {status}")
joined = Model(folder / "joined.heed")
for n, m in itertools.product(EXTENTS, repeat=2):
    check("joined", joined, [(n, 0), (m, 0)], (n + m, 0))

# Programs read such shapes from files.
def header(name, shape):
    """An array without elements."""
    text = f"{{'descr': '|i1', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    (folder / name).write_bytes(b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text.encode())
    return folder / name


expect(run(heedc, folder / "double.heed", "-o", folder / "double").returncode == 0, "double: heedc")
for shape, message in [((0, 2**31 + 8), "input 'a': extent D on axis 1 is 2147483656, expected at most 2147418112"),
                       ((2**63 - 1, 0), "input 'a': extent N on axis 0 is 9223372036854775807, expected at most"),
                       ((LIMIT, 0), None)]:
    output = folder / "out.npy"
    output.unlink(missing_ok=True)
    done = run(folder / "double", "--a", header("a.npy", shape), "--output", output)
    if message:
        expect_error(done, message, shape)
        expect(not output.exists(), f"{shape}: an output file")
    else:
        expect(done.returncode == 0 and np.load(output).shape == shape, f"{shape}: {done.stderr}")
for name in "static", "argument":
    done = run(heedc, folder / f"{name}.heed", "-o", folder / name)
    expect(done.returncode == 1 and f"expected at most {LIMIT}" in done.stderr and f"{name}.heed:1:" in done.stderr
           and not (folder / name).exists(), f"{name}: {done.stderr}")
finish()
