# RUN: %python %s %heed_bin %t
"""erf and gelu of what libHalide knows bounds of (small integers, truth values, choices, remainders): it looked for the polynomial's bounds without end."""
import math
import pathlib
import subprocess
import sys

import numpy as np

from runs import expect, finish

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
erf = np.vectorize(math.erf, otypes=[float])
small = np.arange(-128, 128, dtype=np.int8)
flags = np.arange(37) % 3 == 0
floats = np.linspace(-9, 9, 1001, dtype=np.float32)


def gelu(x):
    x = np.asarray(x, float)
    return x * 0.5 * (1 + erf(x / math.sqrt(2)))


CASES = {
    "of an i8": ("x: i8[N]", "erf(f32(x[n]))", small, lambda x: erf(x.astype(float))),
    "gelu of an i8": ("x: i8[N]", "gelu(x[n])", small, gelu),
    "scaled": ("x: i8[N]", "erf(f32(x[n]) / 32.0) + gelu(f32(x[n]) / 64.0)", small, lambda x: erf(x / 32.0) + gelu(x / 64.0)),
    "of a bool": ("x: bool[N]", "erf(if x[n] then 1.5 else -0.5)", flags, lambda x: erf(np.where(x, 1.5, -0.5))),
    "gelu of a bool": ("x: bool[N]", "gelu(if x[n] then 1.5 else -0.5)", flags, lambda x: gelu(np.where(x, 1.5, -0.5))),
    "of a remainder": ("x: i32[N]", "erf(f32(x[n] % 7) - 3.0)", np.arange(-50, 50, dtype=np.int32), lambda x: erf(x % 7 - 3.0)),
    "of a choice": ("x: f32[N]", "gelu(if x[n] < 0.5 then 1.0 else 2.0)", floats, lambda x: gelu(np.where(x < 0.5, 1.0, 2.0))),
    "twice": ("x: i8[N]", "erf(erf(f32(x[n])) + gelu(gelu(x[n])))", small, lambda x: erf(erf(x.astype(float)) + gelu(gelu(x)))),
    "clamped": ("x: f32[N]", "erf(max(min(x[n], 3.0), -3.0))", floats, lambda x: erf(np.clip(x.astype(float), -3, 3))),
}
for number, (what, (inputs, body, x, oracle)) in enumerate(CASES.items()):
    source, program = folder / f"m{number}.heed", folder / f"m{number}"
    source.write_text(f"model m({inputs}) {{ return y[n] = {body} }}\n")
    done = subprocess.run([heedc, source, "-o", program], capture_output=True, text=True)
    expect(done.returncode == 0, f"{what}: {done.stderr}")
    if done.returncode:
        continue
    for part in x, x[5:6], x[:17]:  # whole vectors and tails
        np.save(folder / "x.npy", part)
        run = subprocess.run([program, "--x", folder / "x.npy", "--output", folder / "y.npy"], capture_output=True, text=True)
        expect(run.returncode == 0, f"{what}: {run.stderr}")
        if run.returncode == 0:
            got, want = np.load(folder / "y.npy"), oracle(part)
            expect((np.abs(got - want) <= 5e-7 * np.maximum(1, np.abs(want))).all(), f"{what}: {np.abs(got - want).max()}")
finish()
