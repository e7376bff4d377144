# RUN: %python %s %heed_bin %heed_src %t
"""A masked attention whose keys no second cache holds, so that a task has many tiles of queries, against float64 NumPy: causal, with more keys
than queries and sizes that fill neither a tile, a block nor a task; rows at the ends of tiles and of tasks."""
import pathlib
import shutil
import sys

import numpy as np

from runs import expect, finish, run

binaries, source, folder = (pathlib.Path(arg) for arg in sys.argv[1:4])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
rng = np.random.default_rng(3)
H, N, M, E = 8, 4337, 4501, 64

done = run(binaries / "heedc", source / "models/core/causal-attention.heed", "-o", folder / "causal")
expect(done.returncode == 0, done.stderr)
arrays = {name: rng.standard_normal((1, H, rows, E), dtype=np.float32) for name, rows in (("q", N), ("k", M), ("v", M))}
command = [folder / "causal", "--output", folder / "o.npy"]
for name, array in arrays.items():
    np.save(folder / f"{name}.npy", array)
    command += [f"--{name}", folder / f"{name}.npy"]
done = run(*command)
expect(done.returncode == 0, done.stderr)
o = np.load(folder / "o.npy")[0]
rows = np.concatenate([np.arange(first, min(first + 3, N)) for first in range(0, N, 31)] + [np.arange(N - 3, N)])
for h in (0, H - 1):
    q, k, v = (arrays[name][0, h].astype(np.float64) for name in "qkv")
    s = q[rows] @ k.T / np.sqrt(E)
    s[np.arange(M) > rows[:, None] + M - N] = -np.inf
    w = np.exp(s - s.max(-1, keepdims=True))
    error = np.abs(w @ v / w.sum(-1, keepdims=True) - o[h, rows]).max()
    expect(error < 1e-5, f"head {h}: {error}")
expect(np.isfinite(o).all(), "all rows are written")
finish()
