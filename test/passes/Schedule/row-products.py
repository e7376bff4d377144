# RUN: %python %s %heed_bin %t
"""Rows times a small matrix that is no parameter, with what the rows are computed from and the sums over them in the same kernel, and the long sums
that make such a matrix, with the sum beside it as one more row, against float64 NumPy: linear attention with widths that fill no vector or several panels, matrices in either order, a normaliser with a floor, one that belongs to
other rows, few rows and rows around a tile, for both widths of vectors. Which schedule they have is checked, too."""
import math
import pathlib
import shutil
import sys

import numpy as np

from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
rng = np.random.default_rng(11)

LINEAR = """fn phi(x) = elu(x) + 1
model m(q, k: f32[B, H, N, %(e)d], v: f32[B, H, N, %(f)d]) {
  a[b,h,i,j] = sum(e) phi(q[b,h,i,e]) * phi(k[b,h,j,e])
  return o[b,h,i,f] = (sum(j) a[b,h,i,j] * v[b,h,j,f]) / max(sum(j) a[b,h,i,j], 0.001)
}
"""
STATE = """model m(q: f32[B, N, %(e)d], s: f32[B, %(e)d, %(f)d]) {
  p[b,n,e] = exp(q[b,n,e])
  y[b,n,f] = sum(e) p[b,n,e] * s[b,e,f]
  return o[b,n,f] = y[b,n,f] / (sum(e) p[b,n,e])
}
"""
TURNED = STATE.replace("s: f32[B, %(e)d, %(f)d]", "s: f32[B, %(f)d, %(e)d]").replace("s[b,e,f]", "s[b,f,e]")
ALONE = """model m(q: f32[B, N, %(e)d], s: f32[B, %(e)d, %(f)d]) {
  p[b,n,e] = exp(q[b,n,e])
  return o[b,n,f] = sum(e) p[b,n,e] * s[b,e,f]
}
"""
INSIDE = """model m(q: f32[B, N, %(e)d], s: f32[B, %(e)d, %(f)d]) {
  return o[b,n,f] = sum(e) exp(q[b,n,e]) * s[b,e,f]
}
"""
SWAPPED = """model m(q: f32[3, 3, %(e)d], s: f32[3, %(e)d, %(f)d]) {
  p[b,n,e] = exp(q[b,n,e])
  y[b,n,f] = sum(e) p[b,n,e] * s[b,e,f]
  l[b,n] = sum(e) p[b,n,e]
  return o[b,n,f] = y[b,n,f] / l[n,b]
}
"""


SUMMED = """model m(k: f32[B, N, %(e)d], v: f32[B, N, %(f)d]) {
  p[b,j,e] = exp(k[b,j,e])
  s[b,e,f] = sum(j) p[b,j,e] * v[b,j,f]
  z[b,e] = sum(j) p[b,j,e]
  return o[b,e,f] = s[b,e,f] * 0.5, z
}
"""
# Of features of 160 and values of 128, with a maximum of each row and one of all: neither features of keys nor those of queries are stored.
NORMED = """model m(q, k: f32[B, N, %(e)d], v: f32[B, N, %(f)d]) {
  t[b] = max(j, e) k[b,j,e]
  u[b,i] = max(e) q[b,i,e]
  p[b,j,e] = exp(k[b,j,e] - t[b])
  g[b,i,e] = exp(q[b,i,e] - u[b,i])
  a[b,i,j] = sum(e) g[b,i,e] * p[b,j,e]
  return o[b,i,f] = (sum(j) a[b,i,j] * v[b,j,f]) / (sum(j) a[b,i,j])
}
"""
# Rows of a layer, whose terms lie side by side: computed in the product they would be so once for each panel of columns.
LAYER = """model m(q: f32[B, N, K], s: f32[B, K, %(f)d]) {
  p[b,n,k] = gelu(q[b,n,k])
  return o[b,n,f] = sum(k) p[b,n,k] * s[b,k,f]
}
"""
BARE = """model m(k: f32[B, N, %(e)d], v: f32[B, N, %(f)d]) {
  p[b,j,e] = exp(k[b,j,e])
  g[b,j,f] = exp(v[b,j,f])
  return o[b,f,e] = sum(j) p[b,j,e] * g[b,j,f]
}
"""


def linear(q, k, v):
    phi = lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))) + 1
    a = phi(q) @ phi(k).swapaxes(-1, -2)
    return {"o": a @ v / np.maximum(a.sum(-1, keepdims=True), 0.001)}


def state(q, s, turned=False, swapped=False, divides=True):
    p = np.exp(q)
    y = np.einsum("bne,bfe->bnf" if turned else "bne,bef->bnf", p, s)
    l = p.sum(-1)
    return {"o": y / (l.T if swapped else l)[..., None] if divides else y}


def check(name, source, e, f, sizes, wanted, *options, schedules=("row product",), no=()):
    """wanted: of float64 arrays; sizes: shapes before the last axis of the first input."""
    (folder / f"{name}.heed").write_text(source % {"e": e, "f": f})
    done = run(heedc, folder / f"{name}.heed", "--explain=all", "-o", folder / name, *options)
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    for schedule in schedules + no:
        found = f"has the {schedule} schedule" in done.stderr
        expect(found == (schedule in schedules), f"{name}: {schedule} is {found}: {done.stderr}")
    for outer in sizes:
        if source in (LINEAR, NORMED):
            shapes = {"q": (*outer, e), "k": (*outer, e), "v": (*outer, f)}
        elif source in (SUMMED, BARE):
            shapes = {"k": (*outer, e), "v": (*outer, f)}
        else:
            shapes = {"q": (*outer, e), "s": (outer[0], f, e) if source == TURNED else (outer[0], e, f)}
        arrays = {}
        for key, shape in shapes.items():
            arrays[key] = rng.standard_normal(shape).astype("f4")
            np.save(folder / f"{key}.npy", arrays[key])
        exact = wanted(*(a.astype("f8") for a in arrays.values()))
        outputs = [word for key in exact for word in ("--output", f"{key}={folder / key}.out.npy")]
        done = run(folder / name, *(word for key in shapes for word in (f"--{key}", folder / f"{key}.npy")), *outputs)
        expect(done.returncode == 0, f"{name} {outer}: {done.stderr}")
        for key, values in exact.items() if done.returncode == 0 else ():
            got = np.load(folder / f"{key}.out.npy")
            expect(got.shape == values.shape and np.abs(got - values).max(initial=0) < 1e-5 * max(1, np.abs(values).max(initial=0)),
                   f"{name} {outer}: {key} differs by {np.abs(got - values).max(initial=0) if got.shape == values.shape else got.shape}")


def layer(q, s):
    erf = np.vectorize(math.erf)
    return {"o": (0.5 * q * (1 + erf(q / np.sqrt(2)))) @ s}


def normed(q, k, v):
    p, g = np.exp(k - k.max((1, 2), keepdims=True)), np.exp(q - q.max(2, keepdims=True))
    a = g @ p.swapaxes(1, 2)
    return {"o": a @ v / a.sum(-1, keepdims=True)}


def summed(k, v):
    p = np.exp(k)
    return {"o": 0.5 * np.einsum("bje,bjf->bef", p, v), "z": p.sum(1)}


def extremes(name, floor, *options):
    """Quotients are those of a division also where the divisor's reciprocal is no float, and so are 0, infinity and NaN. Where digits decide, they
    are the same ones."""
    (folder / f"{name}.heed").write_text("""model m(a: f32[N, 16], s: f32[16, 32], t: f32[N, 16]) {
  y[n, f] = sum(r) a[n, r] * s[r, f]
  return o[n, f] = %s(y[n, f] / (sum(r) a[n, r] * t[n, r]))
}
""" % ("floor" if floor else ""))
    done = run(heedc, folder / f"{name}.heed", "--explain=all", "-o", folder / name, *options)
    expect(done.returncode == 0 and "has the row product schedule" in done.stderr, f"{name}: {done.stderr}")
    # Row by row y = c * w for a place w of the row, and the divisor d.
    tiny, huge = 2.0**-149, 2.0**127 * 1.9
    w = np.array([1, -1, 2.0**-60, 2.0**-100, 2.0**-126, 0, 2.0**60, 2.0**100, np.inf, np.nan, 7])
    d = np.array([1, -1, 3, tiny, 5 * tiny, -3 * 2.0**-130, 2.0**-126, 2.0**-101, 2.0**100, huge, -huge, 2.0**126 * 1.5, 0, -0.0, np.inf, -np.inf, np.nan, 7])
    w, d = (x.ravel() for x in np.meshgrid(w, d))
    a, t, s = np.zeros((len(w), 16), "f4"), np.zeros((len(w), 16), "f4"), np.zeros((16, 32), "f4")
    a[:, 0], a[:, 1], t[:, 1] = w, 1, d
    c = rng.standard_normal(32).astype("f4")
    c[:5] = [1, 2, 3, 7, 0]
    s[0] = c
    for key, value in {"a": a, "s": s, "t": t}.items():
        np.save(folder / f"{key}.npy", value)
    done = run(folder / name, *(x for key in "ast" for x in (f"--{key}", folder / f"{key}.npy")), "--output", folder / "o.npy")
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    o = np.load(folder / "o.npy")
    with np.errstate(all="ignore"):
        y, l = (a @ s), (a * t).sum(1)[:, None]
        exact = y / l
        if floor:
            exact = np.floor(exact)
        same = (o == exact) | np.isnan(o) & np.isnan(exact)
        if not floor:  # an overflow and a denormal number by one rounding more
            same |= (np.abs(o - exact) <= 2e-7 * np.abs(exact) + 2.0**-149) & np.isfinite(exact)
    expect(same.all(), f"{name}: {y[~same][:5]} / {np.broadcast_to(l, y.shape)[~same][:5]}: {o[~same][:5]}, expected {exact[~same][:5]}")


rows = [(2, 3, 200), (1, 2, 65), (1, 1, 130), (1, 1, 1), (2, 1, 7), (0, 1, 5), (1, 1, 0)]
both = ("row product", "state product")
# Many blocks of keys, of several heads and batches.
long = [(2, 3, 2100), (3, 2, 1024), (2, 1, 2049)]
for e, f in ((64, 64), (20, 33), (16, 128), (100, 5)):
    check(f"linear_{e}_{f}", LINEAR, e, f, rows + (long if e == 20 else []), linear, schedules=both)
check("linear_avx2", LINEAR, 40, 24, rows, linear, "--target=x86-64-v3", schedules=both)
few = [(2, 64), (3, 13), (1, 1), (2, 6), (1, 0)]
for e, f in ((64, 64), (30, 70), (5, 16), (128, 128)):
    check(f"state_{e}_{f}", STATE, e, f, few, state)
check("state_avx2", STATE, 32, 48, few, state, "--target=x86-64-v3")
check("turned", TURNED, 48, 40, few, lambda q, s: state(q, s, turned=True))
check("alone", ALONE, 33, 64, few, lambda q, s: state(q, s, divides=False))
check("inside", INSIDE, 33, 64, few, lambda q, s: state(q, s, divides=False))
check("swapped", SWAPPED, 17, 20, [(3, 3)], lambda q, s: state(q, s, swapped=True), schedules=(), no=("row product",))
# A matrix that does not stay near is a product like others.
check("large", ALONE, 256, 256, [(2, 64)], lambda q, s: state(q, s, divides=False), schedules=(), no=("row product",))
terms = [(1, 1), (2, 64), (1, 65), (3, 200), (1, 1000), (1, 0), (0, 3)]
for e, f in ((64, 64), (33, 20), (5, 128)):
    check(f"summed_{e}_{f}", SUMMED, e, f, terms, summed, schedules=("state product",), no=("rows",))
check("summed_avx2", SUMMED, 24, 40, terms, summed, "--target=x86-64-v3", schedules=("state product",))
# Of a length that is known the same, where it is long.
for n, schedule in ((512, "state product"), (1000, "state product"), (100, "contraction")):
    check(f"summed_known_{n}", SUMMED, 64, 33, [(2, n)], summed, "--set", f"N={n}", schedules=(schedule,), no=("state product",) if n == 100 else ())
check("summed_of_one_batch", SUMMED, 5, 16, [(1, 700)], summed, "--set", "N=700", "--set", "B=1", schedules=("state product",))
check("normed", NORMED, 160, 128, [(2, 1000)], normed, "--set", "N=1000", schedules=both)
said = run(heedc, folder / "normed.heed", "--explain=all", "--set", "N=1000", "-o", folder / "normed").stderr
expect("stored between kernels: [B, 129, 160]" in said and "stored between kernels: [B, 1000, 160]" not in said, f"normed: {said}")
for name, f, options in (("layer_known", 256, ("--set", "K=2048")), ("layer_wide", 512, ())):
    check(name, LAYER, 2048, f, [(2, 64)], layer, "--set", "N=64", *options, schedules=("contraction", "elementwise"), no=("row product", "state product"))
extremes("extremes", False)
extremes("extremes_avx2", False, "--target=x86-64-v3")
extremes("extremes_floor", True)
check("bare", BARE, 48, 17, terms, lambda k, v: {"o": np.einsum("bje,bjf->bfe", np.exp(k), np.exp(v))}, schedules=("state product",), no=("elementwise",))
finish()
