# RUN: %python %s %heed_bin %t
"""Attention whose scores and weights are f16: both are rounded as written, in two passes over the keys, against float64 NumPy.
Weights that are subnormal or round to 0, scores that overflow to infinity, NaN, rows of nothing but a large fill (of which no log-sum-exp knows
the number of keys: all scores of a row at once then), no key, no query, one of each, sizes around a tile, one query of a longer call."""
import pathlib
import subprocess
import sys

import numpy as np

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
E, F = 16, 8
SOURCE = """model m(q: f16[N, E], k: f16[M, E], v: f16[M, F], fill: bool[M]) {
  s[i,j] = sum(e) q[i,e] * k[j,e] / sqrt(E)
  x[i,j] = if fill[j] then -60000 else s[i,j]
  p[i,j] = softmax(j where j <= i + (M - N)) x[i,j]
  return o[i,f] = sum(j) p[i,j] * v[j,f]
}
"""
(folder / "m.heed").write_text(SOURCE)
said = subprocess.run([heedc, folder / "m.heed", "-o", folder / "m", "--explain"], check=True, capture_output=True, text=True).stderr
random = np.random.default_rng(7)
half = lambda a: np.asarray(a, np.float64).astype(np.float16).astype(np.float64)


def want(q, k, v, fill):
    """The output, and for each row the sum of |p v|: what roundings are measured by."""
    n, m = len(q), len(k)
    with np.errstate(all="ignore"):
        s = half(q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(E))
        s = np.where(fill[None, :], -60000.0, s)
        live = np.arange(m)[None, :] <= np.arange(n)[:, None] + (m - n)
        live &= s != -np.inf
        o, size = np.zeros((n, F)), np.zeros((n, F))
        for i in range(n):
            x = s[i][live[i]]
            if not len(x):
                continue
            w = np.exp(x - x.max())
            p = half(w / w.sum())
            o[i], size[i] = p @ v[live[i]].astype(np.float64), p @ np.abs(v[live[i]].astype(np.float64))
    return half(o), size


def draw(n, m, scale=1):
    """Integers: every score is exact, whatever the order of its sum."""
    q, k = random.integers(-4, 5, (n, E)) * scale, random.integers(-4, 5, (m, E))
    return q.astype(np.float16), k.astype(np.float16), random.integers(-8, 9, (m, F)).astype(np.float16), np.zeros(m, bool)


def one_beside(m, below):
    """Key 0 has the score 0 and the value 0; all others lie \\p below it and have the value 1."""
    q, k = np.zeros((1, E), np.float16), np.zeros((m, E), np.float16)
    q[0, 0], k[1:, 0] = 4, below
    v = np.ones((m, F), np.float16)
    v[0] = 0
    return q, k, v, np.zeros(m, bool)


CASES = {f"{n} x {m}": draw(n, m) for n, m in [(1, 1), (1, 300), (3, 70), (16, 16), (17, 129), (33, 31), (65, 200), (2, 0), (0, 3), (5, 1)]}
CASES["subnormal weights"] = one_beside(4096, -17)
CASES["weights that round to 0"] = one_beside(4096, -18)
CASES["scores beyond 512"] = draw(40, 70, 64)
filled = draw(40, 70)
filled[3][:] = True
CASES["rows of a fill"] = filled
some = draw(40, 70)
some[3][::3] = True
CASES["a fill among others"] = some
infinite = draw(40, 70)
infinite[0][7] = 30000
infinite[1][:, :] = np.abs(infinite[1]) + 1
CASES["overflow to infinity"] = infinite
low = draw(40, 70)
low[0][7] = -30000
low[1][:, :] = np.abs(low[1]) + 1
CASES["overflow to -infinity"] = low
nan = draw(40, 70)
nan[0][7, 3] = np.nan
CASES["NaN in a query"] = nan

failed = 0
if "two passes over the keys, no scores are stored" not in said:
    print("FAIL: it does not stream in two passes:", said)
    failed += 1
for name, inputs in CASES.items():
    for key, array in zip(("q", "k", "v", "fill"), inputs):
        np.save(folder / f"{key}.npy", array)
    subprocess.run([folder / "m", *(part for key in ("q", "k", "v", "fill") for part in (f"--{key}", folder / f"{key}.npy")), "--output", folder / "o.npy"],
                   check=True)
    got = np.load(folder / "o.npy").astype(np.float64)
    o, size = want(*inputs)
    # A weight that lies between two f16 may go to either; so may the output.
    near = np.abs(got - o) <= 1.05 * 2.0**-11 * (2 * size + np.abs(o)) + 2.0**-24
    bad = ~(near | (np.isnan(got) & np.isnan(o)))
    if name in ("subnormal weights", "weights that round to 0"):
        bad |= got != o
    if got.shape != o.shape or bad.any():
        print(f"FAIL {name}: {bad.sum()} of {bad.size}, {got[bad][:4]} instead of {o[bad][:4]}")
        failed += 1
sys.exit(failed > 0)
