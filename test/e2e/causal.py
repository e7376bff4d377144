# RUN: %python %s %heed_bin %heed_src %t halide
# RUN: %python %s %heed_bin %heed_src %t reference
"""Causal attention with grouped heads: the program's numbers against float64 NumPy, on odd and empty sizes."""
import pathlib
import subprocess
import sys

import numpy as np

heedc, source = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2]) / "models/core/causal-attention.heed"
folder, backend = pathlib.Path(sys.argv[3] + "." + sys.argv[4]), sys.argv[4]
folder.mkdir(parents=True, exist_ok=True)
program = folder / "causal"
subprocess.run([heedc, source, "--backend=" + backend, "-o", program], check=True)


def oracle(q, k, v):
    """Equation 1 with bottom-right aligned causality; a row without keys is zero."""
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    (_, heads, n, e), (groups, m) = q.shape, k.shape[1:3]
    k, v = (a[:, np.arange(heads) * groups // heads] for a in (k, v))
    s = np.einsum("bhie,bhje->bhij", q, k) / np.sqrt(e)
    mask = np.arange(m)[None, :] <= np.arange(n)[:, None] + (m - n)
    s = np.where(mask, s, -np.inf)
    top = s.max(axis=-1, keepdims=True, initial=-np.inf)
    p = np.where(mask, np.exp(s - np.where(np.isfinite(top), top, 0)), 0)
    total = p.sum(axis=-1, keepdims=True)
    return np.einsum("bhij,bhjf->bhif", p / np.where(total == 0, 1, total), v)


def run(q, k, v):
    for name, array in (("q", q), ("k", k), ("v", v)):
        np.save(folder / (name + ".npy"), array)
    done = subprocess.run([program, *(x for n in "qkv" for x in ("--" + n, folder / (n + ".npy"))),
                           "--output", folder / "o.npy"], capture_output=True, text=True)
    return done, (np.load(folder / "o.npy") if done.returncode == 0 else None)


random = np.random.default_rng(1)
failed = 0
#        B  H  G  N   M   E   F
SIZES = [(2, 4, 2, 17, 17, 8, 8), (1, 1, 1, 1, 1, 1, 1), (1, 6, 3, 5, 33, 7, 9), (1, 2, 1, 9, 4, 16, 3),
         (2, 2, 2, 0, 5, 4, 4), (0, 2, 1, 3, 3, 4, 4), (1, 2, 2, 130, 130, 64, 64), (1, 3, 1, 4, 0, 5, 6)]
for b, h, g, n, m, e, f in SIZES:
    q, k, v = (random.uniform(-1, 1, s).astype(np.float32) for s in ((b, h, n, e), (b, g, m, e), (b, g, m, f)))
    want = oracle(q, k, v)
    done, got = run(q, k, v)
    if got is None or got.shape != want.shape:
        print("FAIL", (b, h, g, n, m, e, f), done.returncode, done.stderr, None if got is None else got.shape)
        failed += 1
        continue
    error = np.abs(got - want).max(initial=0) / max(np.abs(want).max(initial=0), 1e-30)
    ok = error <= 1e-5
    failed += not ok
    print("ok" if ok else "FAIL", (b, h, g, n, m, e, f), f"{error:.2e}")

# Extents that disagree end the program with a message, not with numbers.
done, got = run(np.zeros((1, 2, 3, 4), "f"), np.zeros((1, 1, 3, 5), "f"), np.zeros((1, 1, 3, 4), "f"))
if done.returncode != 1 or "4" not in done.stderr or "5" not in done.stderr:
    print("FAIL: disagreeing extents:", done.returncode, done.stderr)
    failed += 1
sys.exit(bool(failed))
