# RUN: %python %s %heed_bin %t
"""softmax and log_softmax of rows with NaN, infinities and the least float, with a mask and a sink, against float64 NumPy: an
element of score -inf is absent, whatever else its row holds, and a live NaN is seen in all others and in products with them, at
the end of a row that fills no vector, too."""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
INF, NAN, LEAST = np.inf, np.nan, np.finfo(np.float32).min
MODEL = """model ends(s: f32[N, M], c: f32[N], w: f32[3, M]) {
  p[i,j] = softmax(j) s[i,j]
  pl[i,j] = log_softmax(j) s[i,j]
  pm[i,j] = softmax(j where j <= i) s[i,j]
  pml[i,j] = log_softmax(j where j <= i) s[i,j]
  ps[i,j] = softmax(j; sink = c[i]) s[i,j]
  pms[i,j] = softmax(j where j <= i; sink = c[i]) s[i,j]
  twice[i,j] = softmax(j) (2 * s[i,j])
  return p, pl, pm, pml, ps, pms, twice, sums[i,n] = sum(j) p[i,j] * w[n,j]
}
"""
NAMES = ("p", "pl", "pm", "pml", "ps", "pms", "twice", "sums")


def want(name, s, c, w):
    if name == "sums":  # each by itself: a matrix product may take NaN * 0 for 0
        p = want("p", s, c, w)
        live = s != -INF
        return np.array([[sum(p[i, j] * w[n, j] for j in np.flatnonzero(live[i])) for n in range(3)] for i in range(len(s))], float)
    s = s.astype(np.float64) * (2 if name == "twice" else 1)
    if name == "twice":
        s = s.astype(np.float32).astype(np.float64)
    (N, M), log = s.shape, name.endswith("l")
    live = ~(s == -INF)
    if "m" in name:
        live &= np.arange(M)[None, :] <= np.arange(N)[:, None]
    out = np.full((N, M), -INF if log else 0.0)
    for i in range(N):
        keys = np.flatnonzero(live[i])
        if not len(keys):
            continue
        scores = np.append(s[i, keys], c[i]) if name.endswith("s") else s[i, keys]
        rest = scores - scores.max()
        rest -= np.log(np.exp(rest).sum())
        out[i, keys] = (rest if log else np.exp(rest))[:len(keys)]
    return out


def same(got, expected):
    finite = np.isfinite(expected)
    ends = np.where(finite, 0, expected)
    return (np.array_equal(np.where(np.isfinite(got), 0, got), ends, equal_nan=True)
            and np.allclose(got[finite], expected[finite], rtol=3e-5, atol=1e-7))


def rows(m, rng):
    few = [[1, -INF, NAN, 2, 0.5], [-INF] * 5, [1, -INF, 2, 3, -INF], [NAN, -INF, NAN, NAN, NAN], [INF, 1, -INF, 2, 3], [INF, -INF, INF, NAN, 0],
           [LEAST] * 5, [LEAST, -INF, LEAST, -INF, -INF], [0, LEAST, -200, -INF, 1], [-200, 0, NAN, -INF, LEAST]]
    at = rng.integers(0, 5, m)  # each row's numbers, at places of their own
    at[:5] = range(5)
    return np.array(few, np.float32)[:, at]


(folder / "ends.heed").write_text(MODEL)
rng = np.random.default_rng(5)
for backend in ("halide", "reference"):
    program = folder / backend
    done = run(heedc, folder / "ends.heed", "--backend=" + backend, "-o", program)
    expect(done.returncode == 0, f"{backend}: {done.stderr}")
    for m in (5, 16, 37):
        s = rows(m, rng)
        s = np.concatenate([s, s[rng.permutation(len(s))], rng.standard_normal((m, m)).astype(np.float32)])
        c = rng.choice(np.array([0, 1, -INF, 3], np.float32), len(s))
        np.save(folder / "s.npy", s)
        np.save(folder / "c.npy", c)
        w = rng.standard_normal((3, m)).astype(np.float32)
        w[0, 0] = NAN if m == 16 else 1
        np.save(folder / "w.npy", w)
        outs = [x for name in NAMES for x in ("--output", f"{name}={folder / name}.npy")]
        done = run(program, "--s", folder / "s.npy", "--c", folder / "c.npy", "--w", folder / "w.npy", *outs)
        expect(done.returncode == 0, f"{backend}: {done.stderr}")
        for name in NAMES:
            got = np.load(folder / f"{name}.npy")
            with np.errstate(all="ignore"):
                expected = want(name, s, c, w.astype(np.float64))
            expect(same(got, expected), f"{backend}, {name}, {m} elements a row: {got} for {expected}")
finish()
