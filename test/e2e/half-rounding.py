# RUN: %python %s %heed_bin %t
"""A cast to f16 in the middle of a kernel rounds: LLVM folds an extension of a truncation away where a kernel may contract.
Every number that lies on, beside or between two halves, subnormal ones, overflow, infinities, NaN; a sum that is cast; both are read again. Also by libHalide's own conversion, which knew no NaN."""
import pathlib
import subprocess
import sys

import numpy as np

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
halves = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16).astype(np.float32)
halves = np.unique(halves[np.isfinite(halves)])
with np.errstate(over="ignore"):
    between = np.append((halves[:-1] + halves[1:]) / 2, np.float32(65520)).astype(np.float32)
up, down = np.float32(np.inf), np.float32(-np.inf)
special = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, -1e-30, 0.0, -0.0], np.float32)
x = np.concatenate([special, *[np.concatenate([v, np.nextafter(v, up), np.nextafter(v, down)]) for v in (halves, between, -between)]])
with np.errstate(over="ignore"):
    half = lambda v: v.astype(np.float16).astype(np.float32)
    one = half(x)
    two = np.stack([x, x], 1)
    MODELS = {
        "alone": ("model alone(x: f32[N]) {\n  return y[n] = f32(f16(x[n]))\n}\n", x, one),
        "read-again": ("model read(x: f32[N]) {\n  h[n] = f16(x[n])\n  return y[n] = max(f32(h[n]), -0.5) * 0.5\n}\n", x,
                       np.where(np.isnan(one), one, np.maximum(one, np.float32(-0.5))) * np.float32(0.5)),
        "sum": ("model sum_(x: f32[N, D]) {\n  s[n] = sum(d) x[n, d] * 0.5\n  return y[n] = f32(f16(s[n]))\n}\n", two, one),
        "stored": ("model stored(x: f32[N]) {\n  return y[n] = f16(x[n])\n}\n", x, one),
    }
failed = 0
for name, (source, array, want), target in [(*m, t) for m in MODELS.items() for t in ("host", "x86-64")]:
    (folder / f"{name}.heed").write_text(source)
    subprocess.run([heedc, folder / f"{name}.heed", "-o", folder / name, f"--target={target}"], check=True, stderr=subprocess.DEVNULL)
    np.save(folder / "x.npy", array)
    subprocess.run([folder / name, "--x", folder / "x.npy", "--output", folder / "y.npy"], check=True)
    got = np.load(folder / "y.npy").astype(np.float32)
    bad = ~((got == want) | (np.isnan(got) & np.isnan(want)))
    if bad.any():
        k = int(np.argmax(bad))
        print(f"FAIL {name}, {target}: {bad.sum()} of {bad.size}: {x[k]!r} gives {got[k]!r}, expected {want[k]!r}")
        failed += 1
sys.exit(failed)
