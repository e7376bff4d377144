# RUN: %python %s %heed_bin %t
"""Chains of three and four matrices: one program for all sizes takes the cheaper order in each call. Against NumPy, with
sizes that take every branch; what an order must not make would not fit into the memory that is allowed here."""
import pathlib
import resource
import subprocess
import sys

import numpy as np

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
MODELS = {
    "three": "model three(a: f32[I, J], b: f32[J, K], c: f32[K, L]) {\n  x[i,k] = sum(j) a[i,j] * b[j,k]\n"
             "  return y[i,l] = sum(k) x[i,k] * c[k,l]\n}\n",
    "four": "model four(a: f32[I, J], b: f32[J, K], c: f32[K, L], d: f32[L, M]) {\n  x[i,k] = sum(j) a[i,j] * b[j,k]\n"
            "  y[i,l] = sum(k) x[i,k] * c[k,l]\n  return z[i,m] = sum(l) y[i,l] * d[l,m]\n}\n",
}
SHAPES = {  # extents along the chain
    "three": [(3, 5, 7, 9), (40, 30, 1, 50), (40, 1, 30, 50), (1, 60, 50, 40), (50, 40, 60, 1), (0, 3, 4, 5), (200000, 2, 200000, 2)],
    "four": [(3, 5, 7, 9, 4), (40, 30, 20, 30, 1), (1, 30, 20, 30, 40), (30, 2, 40, 2, 30), (2, 40, 2, 40, 2)],
}
random = np.random.default_rng(3)
failed = 0


def limit():
    """200000 x 200000 floats have 149 GiB."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


for name, source in MODELS.items():
    program = folder / name
    (folder / f"{name}.heed").write_text(source)
    explained = subprocess.run([heedc, folder / f"{name}.heed", "-o", program, "--explain=all"], capture_output=True, text=True)
    if explained.returncode or "two orders, chosen by the sizes of each call" not in explained.stdout + explained.stderr:
        sys.exit(f"{name}: {explained.stdout}{explained.stderr}")
    for shape in SHAPES[name]:
        arrays = [random.uniform(-1, 1, pair).astype(np.float32) for pair in zip(shape, shape[1:])]
        command = [program, "--output", folder / "o.npy"]
        for letter, array in zip("abcd", arrays):
            np.save(folder / f"{letter}.npy", array)
            command += ["--" + letter, folder / f"{letter}.npy"]
        done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, timeout=120)
        want = arrays[-1].astype(np.float64)
        for array in reversed(arrays[:-1]):
            want = array.astype(np.float64) @ want
        got = np.load(folder / "o.npy") if done.returncode == 0 else None
        if got is None or got.shape != want.shape or not (np.abs(got - want) <= 1e-5 * max(1, np.abs(want).max(initial=0))).all():
            print("FAIL", name, shape, done.stderr or np.abs(got - want).max(initial=0))
            failed += 1
sys.exit(failed)
