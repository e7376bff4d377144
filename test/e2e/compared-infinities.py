# RUN: %python %s %heed_bin %t
"""A comparison with an infinity sees what was computed, in each kind of kernel: LLVM is told that a plain sum is never infinite, and took
such comparisons of sums for false. Against NumPy: what is summed is infinite for some rows."""
import itertools
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)

HEAD = "model m(a: f32[N, D], b: f32[M, D], c: f32[M, F]) {\n  s[i,j] = sum(d) a[i,d] * b[j,d]\n"
# What becomes of s, which is compared once: LLVM looks no further where it is compared twice.
MODELS = {
    "contraction": "  return o[i,j] = {0}\n",
    "row": "  m[i] = max(j) {0}\n  return o[i,j] = m[i] + {0}\n",
    "attention": "  return o[i,f] = sum(j) {0} * c[j,f]\n",
    "softmax": "  t[i,j] = {0}\n  p[i,j] = softmax(j) t[i,j]\n  return o[i,f] = sum(j) p[i,j] * c[j,f]\n",
    "reduction": "  r[i] = sum(d) a[i,d]\n  return o[i,j:M] = {1} + 0 * j\n",
}
COMPARED = [("==", "-inf"), ("==", "inf"), ("!=", "inf"), (">", "-inf"), ("<", "inf"), (">=", "inf"), ("<=", "-inf"), ("<", "-inf"), ("<", "0.5"), (">", "0.5"), ("<=", "0.5"), ("!=", "0.5")]
HOW = {"==": np.equal, "!=": np.not_equal, ">": np.greater, "<": np.less, ">=": np.greater_equal, "<=": np.less_equal}
CHOICES = [f"(if {{}} {how} {to} then 0.25 else 1.0)" for how, to in COMPARED]


def want(name, choice, a, b, c):
    with np.errstate(all="ignore"):
        s = np.repeat(a.sum(1, keepdims=True), len(b), 1) if name == "reduction" else (a[:, None, :] * b[None, :, :]).sum(-1)
        w = np.where(HOW[COMPARED[choice][0]](s, float(COMPARED[choice][1])), 0.25, 1.0)
        if name == "row":
            return w + w.max(1, keepdims=True)
        if name == "attention":
            return w @ c
        if name == "softmax":
            return np.exp(w) / np.exp(w).sum(1, keepdims=True) @ c
        return w


rng = np.random.default_rng(5)
for (name, body), choice in itertools.product(MODELS.items(), range(len(CHOICES))):
    path = folder / f"{name}{choice}.heed"
    path.write_text(HEAD + body.format(CHOICES[choice].format("s[i,j]"), CHOICES[choice].format("r[i]")) + "}\n")
    done = run(heedc, path, "-o", folder / name)
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    for N, M, D in ((1, 1, 1), (1, 70, 8), (3, 2, 33), (40, 17, 8), (70, 150, 16)):
        a, b, c = rng.uniform(0.5, 1, (N, D)), rng.uniform(-1, 1, (M, D)), rng.uniform(0.5, 1, (M, 3))
        b[rng.random(M) < 0.4, 0] = -np.inf
        b[0, -1] = np.inf if M > 1 else -np.inf  # of one that has both the sum is NaN
        a[rng.random(N) < 0.3, D // 2] = np.inf
        a[0, D // 2] = -np.inf
        arrays = {"a": a, "b": b, "c": c}
        flags = []
        for key, array in arrays.items():
            np.save(folder / f"{key}.npy", array.astype(np.float32))
            flags += ["--" + key, folder / f"{key}.npy"]
        done = run(folder / name, *flags, "--output", folder / "o.npy")
        expect(done.returncode == 0, f"{name} {(N, M, D)}: {done.stderr}")
        got, expected = np.load(folder / "o.npy"), want(name, choice, *(x.astype(np.float32).astype(np.float64) for x in arrays.values()))
        expect(np.allclose(got, expected, rtol=1e-5, atol=1e-6), f"{path.stem} {(N, M, D)}: {got.ravel()[:6]}, expected {expected.ravel()[:6]}")
finish()
