# RUN: %python %s %heed_bin %t
"""A mask of numbers inside the sum of a softmax, `sum_j w exp(s) v / sum_j w exp(s)`, against float64 NumPy: no tensor over pairs is stored; a
row whose weights are all 0 is 0 / 0, a key of weight 0 that holds NaN shows, one outside of `where` does not."""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
HEAD = """model soft(q: f32[H, N, E], k: f32[H, M, E], v: f32[H, M, F], w: f32[N, M], g: f32[M]) {
  s[h,i,j] = sum(e) q[h,i,e] * k[h,j,e] / sqrt(E)
  x[h,i,j] = w[i,j] * exp(s[h,i,j])
"""
# The text, whether keys are masked, whether each weight is divided: then a row without a key is a sum of nothing.
MODELS = {
    "quotient": ("  return o[h,i,f] = (sum(j) x[h,i,j] * v[h,j,f]) / (sum(j) x[h,i,j])", False, False),
    "each": ("  l[h,i] = sum(j) x[h,i,j]\n  p[h,i,j] = x[h,i,j] / l[h,i]\n  return o[h,i,f] = sum(j) p[h,i,j] * v[h,j,f]", False, True),
    "where": ("  return o[h,i,f] = (sum(j where j + 3 < i) x[h,i,j] * v[h,j,f]) / (sum(j where j + 3 < i) x[h,i,j])", True, False),
    "each-where": ("  l[h,i] = sum(j where j + 3 < i) x[h,i,j]\n  return o[h,i,f] = sum(j where j + 3 < i) x[h,i,j] / l[h,i] * v[h,j,f]", True, True),
    "gate": ("  l[h,i] = sum(j) x[h,i,j]\n  p[h,i,j] = x[h,i,j] * g[j] / l[h,i]\n  return o[h,i,f] = sum(j) p[h,i,j] * v[h,j,f]", False, True),
}


def oracle(a, name):
    q, k, v, w, g = (a[n].astype(np.float64) for n in "qkvwg")
    masked, each = MODELS[name][1:]
    n, m = w.shape
    seen = np.arange(m)[None] + 3 < np.arange(n)[:, None] if masked else np.ones((n, m), bool)
    x = np.where(seen, w * np.exp(np.einsum("hie,hje->hij", q, k) / np.sqrt(q.shape[-1])), 0)
    y = np.where(seen, x * g if name == "gate" else x, 0)
    # What is not seen is not there, whatever it holds.
    above = np.stack([np.stack([y[h, i, seen[i]] @ v[h, seen[i]] for i in range(n)]) if n else np.zeros((0, v.shape[2])) for h in range(len(q))])
    out = above / x.sum(-1, keepdims=True)
    if each:
        out[:, ~seen.any(1)] = 0
    return out


rng = np.random.default_rng(7)
#        H  N    M    E  F
SIZES = [(2, 9, 11, 8, 5), (1, 1, 1, 1, 1), (1, 150, 270, 16, 24), (2, 1, 300, 8, 8), (1, 33, 0, 4, 3), (1, 70, 129, 1, 1)]
for name in MODELS:
    source, program = folder / (name + ".heed"), folder / name
    source.write_text(HEAD + MODELS[name][0] + "\n}\n")
    done = run(heedc, source, "-o", program, "--explain")
    expect(done.returncode == 0 and "1 of 1 attention fused, nothing stored" in done.stderr, f"{name}: {done.stderr[:300]}")
    for h, n, m, e, f in SIZES:
        a = {x: rng.uniform(-1, 1, shape).astype(np.float32) for x, shape in
             (("q", (h, n, e)), ("k", (h, m, e)), ("v", (h, m, f)), ("g", (m,)))}
        a["w"] = np.clip(rng.uniform(-1, 1, (n, m)), 0, 1).astype(np.float32)
        a["w"][n // 2] = 0
        if m > 8:
            a["v"][0, 5] = np.nan
            a["w"][:, 5] = 0
        command = [program, "--output", folder / "o.npy"]
        for x, array in a.items():
            np.save(folder / (x + ".npy"), array)
            command += ["--" + x, folder / (x + ".npy")]
        done = run(*command)
        expect(done.returncode == 0, f"{name}: {done.stderr}")
        with np.errstate(all="ignore"):
            want = oracle(a, name)
        got = np.load(folder / "o.npy")
        largest = np.nanmax(np.abs(want), initial=0)
        expect(got.shape == want.shape and np.allclose(got, want, rtol=0, atol=1e-5 * max(largest, 1), equal_nan=True),
               f"{name} of {h, n, m, e, f}: {np.argwhere(~np.isclose(got, want, rtol=0, atol=1e-5, equal_nan=True))[:3]}")
finish()
