# RUN: %python %s %heed_bin %t
"""tanh of a sample of all floats: a few roundings, never above 1, NaN and the sign of 0 kept."""
import pathlib
import sys

import numpy as np

from runs import expect, finish, run

bin_dir, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
done = run(bin_dir / "heedc", "-", "-o", folder / "model", input="model m(x: f32[N]) { return y[n] = tanh(x[n]) }\n")
expect(done.returncode == 0, done.stderr)
x = np.arange(0, 2**32, 997, dtype=np.uint64).astype(np.uint32).view(np.float32)
x = np.concatenate([x, np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 8.2, -8.2, 1e-40], np.float32)])
np.save(folder / "x.npy", x)
done = run(folder / "model", "--x", folder / "x.npy", "--output", folder / "y.npy")
expect(done.returncode == 0, done.stderr)
y = np.load(folder / "y.npy")
nan = np.isnan(x)
expect(np.array_equal(np.isnan(y), nan), "NaN elsewhere than in the input")
x, y = x[~nan], y[~nan]
expected = np.tanh(x.astype(np.float64))
normal = np.abs(x) > 1e-37  # results below the least normal number may be 0
error = (np.abs(y - expected)[normal] / np.abs(expected)[normal]).max()
expect(error < 4e-7, f"relative error {error}")
expect(np.abs(y).max() == 1, f"largest result {np.abs(y).max()}")
expect(np.array_equal(np.signbit(x), np.signbit(y)), "sign")
finish()
