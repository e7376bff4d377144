# RUN: %python %s %heed_bin %heed_src %t
"""Linear attention written in the quadratic order: long inputs run in the linear order, in little memory; short ones
in the written order. Both against float64 NumPy."""
import pathlib
import resource
import subprocess
import sys

import numpy as np

heedc = pathlib.Path(sys.argv[1]) / "heedc"
source = pathlib.Path(sys.argv[2]) / "models/linear/linear-attention-bidir.heed"
folder = pathlib.Path(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
program = folder / "linear"
subprocess.run([heedc, source, "-o", program], check=True)


def phi(x):
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def oracle(q, k, v):
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    q, k = phi(q), phi(k)
    return q @ (k.swapaxes(-1, -2) @ v) / (q @ k.sum(2)[..., None])


def limit():
    """An N x N matrix of f32 would have 64 GiB."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


random = np.random.default_rng(1)
failed = 0
#        B  H  N        E   F
SIZES = [(1, 1, 1 << 18, 32, 32), (2, 3, 5, 32, 16), (1, 2, 33, 8, 7), (1, 1, 0, 4, 4)]
for b, h, n, e, f in SIZES:
    arrays = {name: random.uniform(-1, 1, (b, h, n, size)).astype(np.float32)
              for name, size in (("q", e), ("k", e), ("v", f))}
    command = [program, "--output", folder / "o.npy"]
    for name, array in arrays.items():
        np.save(folder / (name + ".npy"), array)
        command += ["--" + name, folder / (name + ".npy")]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, timeout=60)
    if done.returncode:
        print("FAIL", (b, h, n, e, f), done.returncode, done.stderr)
        failed += 1
        continue
    got, want = np.load(folder / "o.npy"), oracle(**arrays)
    ok = got.shape == want.shape
    error = np.abs(got - want).max(initial=0) / max(np.abs(want).max(initial=0), 1e-30) if ok else np.inf
    ok = error <= 1e-5
    failed += not ok
    print("ok" if ok else "FAIL", (b, h, n, e, f), f"{error:.2e}")
sys.exit(bool(failed))
