# RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin %t
"""A promise of an edited schedule that only sizes break: the program says so and exits with 1, where it holds the result is right."""
import os
import pathlib
import sys

import numpy as np

from runs import expect, expect_error, finish, run

heedc = pathlib.Path(sys.argv[1]) / "heedc"
os.chdir(sys.argv[2])
for name, length in (("m", "E"), ("short", "19")):
    pathlib.Path(f"{name}.heed").write_text(f"model m(a: f32[N, {length}], b: f32[{length}, M]) {{\n  return c[i,j] = sum(e) a[i,e] * b[e,j]\n}}\n")
    expect(run(heedc, f"{name}.heed", "--emit=halide", "-o", f"{name}.mlir").returncode == 0, "--emit=halide")
lines = pathlib.Path("short.mlir").read_text().splitlines(keepends=True)
# Without its order of loops the output asks for more than the tile that its sums promise.
at = [k for k, line in enumerate(lines) if "halide.reorder %sum0_out" in line]
expect(len(at) == 1, f"the output's order stands once, found {at}")
pathlib.Path("edited.mlir").write_text("".join(line for k, line in enumerate(lines) if k not in at))
for name in ("m", "short", "edited"):
    done = run(heedc, name + ".mlir", "-o", name)
    expect(done.returncode == 0, f"{name}: {done.stderr}")


def outcome(program, n, m, e):
    a, b = (np.random.default_rng(shape[0]).uniform(-1, 1, shape).astype("f") for shape in ((n, e), (e, m)))
    np.save("a.npy", a)
    np.save("b.npy", b)
    done = run("./" + program, "--a", "a.npy", "--b", "b.npy", "--output", "c.npy")
    if done.returncode == 0:
        expect(np.allclose(np.load("c.npy"), a.astype("d") @ b, atol=1e-4), f"{program}: {n} {m} {e}")
        os.remove("c.npy")
    return done


for sizes in ((70, 131, 19), (1, 1, 1), (0, 5, 4), (5, 0, 4), (5, 4, 0), (300, 3, 2000)):
    expect(outcome("m", *sizes).returncode == 0, f"unedited: {sizes}")
expect(outcome("short", 70, 131, 19).returncode == 0, "unedited, its length known")
expect_error(outcome("edited", 70, 131, 19), "do not cover required region", "edited")
expect(outcome("edited", 5, 7, 19).returncode == 0, "edited, where the promise holds")
finish()
