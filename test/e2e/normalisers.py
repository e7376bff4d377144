# RUN: %python %s %heed_bin %t
"""sparsemax and entmax 1.5 of the standard library against float64 NumPy, which sorts: odd sizes, ties, rows of -inf, huge scores, NaN,
and as the weights of an attention."""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import thresholds
from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
SOURCE = """
model rows(s: f32[N, M], v: f32[M, F]) {
  p = NAME(s)
  return p = p, o[i,f] = sum(j) p[i,j] * v[j,f]
}
"""


def want(name, s):
    if not len(s) or np.isnan(s).any() or s.max() == np.inf:
        return np.full(len(s), np.nan)
    if s.max() == -np.inf:
        return np.zeros(len(s))
    live = s != -np.inf
    p = np.zeros(len(s))
    p[live] = thresholds.weights(name, s[live].astype(np.float64))
    return p


rng = np.random.default_rng(3)
ROWS = [
    lambda M: rng.uniform(-1, 1, M),
    lambda M: rng.normal(0, 10, M),
    lambda M: np.full(M, 0.25),
    lambda M: rng.choice([0, 0.5, 0.75], M),
    lambda M: np.full(M, -np.inf),
    lambda M: np.where(rng.random(M) < 0.7, -np.inf, rng.uniform(-1, 1, M)),
    lambda M: rng.choice([3e38, -3e38, 0], M),
    lambda M: np.full(M, np.finfo(np.float32).min),
    lambda M: np.where(np.arange(M) == M // 2, np.nan, 0),
    lambda M: -1e-4 * np.arange(M),
]
for name in thresholds.NORMALISERS:
    for backend in "halide", "reference":
        source, program = folder / f"{name}.heed", folder / f"{name}-{backend}"
        source.write_text(SOURCE.replace("NAME", name))
        done = run(heedc, source, "--backend=" + backend, "-o", program)
        expect(done.returncode == 0, f"{name}, {backend}: {done.stderr}")
        for M in 1, 2, 7, 64, 301, 5000:
            s = np.stack([row(M) for row in ROWS]).astype(np.float32)
            v = rng.uniform(-1, 1, (M, 3)).astype(np.float32)
            np.save(folder / "s.npy", s)
            np.save(folder / "v.npy", v)
            done = run(program, "--s", folder / "s.npy", "--v", folder / "v.npy", "--output", f"p={folder / 'p.npy'}", "--output", f"o={folder / 'o.npy'}")
            expect(done.returncode == 0, f"{name}, {backend}, {M}: {done.stderr}")
            p, o = np.load(folder / "p.npy"), np.load(folder / "o.npy")
            expected = np.stack([want(name, row) for row in s])
            for got, exact, what in (p, expected, "weights"), (o, expected @ v.astype(np.float64), "attention"):
                wrong = (np.isnan(got) != np.isnan(exact)) | (np.abs(got - exact) > 2e-6)
                expect(not wrong.any(), f"{name}, {backend}, {M}, {what}: rows {np.flatnonzero(wrong.any(1))}: "
                                        f"{[(got[i][:4], exact[i][:4]) for i in np.flatnonzero(wrong.any(1))[:2]]}")
finish()
