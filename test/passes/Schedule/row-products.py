# RUN: %python %s %heed_bin %t
"""Rows times a small matrix that is no parameter, with what the rows are computed from and the sums over them in the same kernel, against float64
NumPy: linear attention with widths that fill no vector or several panels, matrices in either order, a normaliser with a floor, one that belongs to
other rows, few rows and rows around a tile, for both widths of vectors. Which schedule they have is checked, too."""
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


def linear(q, k, v):
    phi = lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))) + 1
    a = np.einsum("bhie,bhje->bhij", phi(q), phi(k))
    return np.einsum("bhij,bhjf->bhif", a, v) / np.maximum(a.sum(-1, keepdims=True), 0.001)


def state(q, s, turned=False, swapped=False, divides=True):
    p = np.exp(q)
    y = np.einsum("bne,bfe->bnf" if turned else "bne,bef->bnf", p, s)
    l = p.sum(-1)
    return y / (l.T if swapped else l)[..., None] if divides else y


def check(name, source, e, f, sizes, wanted, *options, fused=True):
    """wanted: of float64 arrays; sizes: shapes before the last axis, of q."""
    (folder / f"{name}.heed").write_text(source % {"e": e, "f": f})
    done = run(heedc, folder / f"{name}.heed", "--explain", "-o", folder / name, *options)
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    expect(("has the row product schedule" in done.stderr) == fused, f"{name}: row product is not {fused}: {done.stderr}")
    for outer in sizes:
        shapes = {"q": (*outer, e)}
        if source == LINEAR:
            shapes |= {"k": (*outer, e), "v": (*outer, f)}
        else:
            shapes["s"] = (outer[0], f, e) if source == TURNED else (outer[0], e, f)
        arrays = {}
        for key, shape in shapes.items():
            arrays[key] = rng.standard_normal(shape).astype("f4")
            np.save(folder / f"{key}.npy", arrays[key])
        done = run(folder / name, *(word for key in shapes for word in (f"--{key}", folder / f"{key}.npy")), "--output", folder / "o.npy")
        expect(done.returncode == 0, f"{name} {outer}: {done.stderr}")
        if done.returncode:
            continue
        got, exact = np.load(folder / "o.npy"), wanted(*(a.astype("f8") for a in arrays.values()))
        expect(got.shape == exact.shape and np.abs(got - exact).max(initial=0) < 1e-5 * max(1, np.abs(exact).max(initial=0)),
               f"{name} {outer}: differs by {np.abs(got - exact).max() if got.size else got.shape}")


rows = [(2, 3, 200), (1, 2, 65), (1, 1, 130), (1, 1, 1), (2, 1, 7), (0, 1, 5), (1, 1, 0)]
for e, f in ((64, 64), (20, 33), (16, 128), (100, 5)):
    check(f"linear_{e}_{f}", LINEAR, e, f, rows, linear)
check("linear_avx2", LINEAR, 40, 24, rows, linear, "--target=x86-64-v3")
few = [(2, 64), (3, 13), (1, 1), (2, 6), (1, 0)]
for e, f in ((64, 64), (30, 70), (5, 16), (128, 128)):
    check(f"state_{e}_{f}", STATE, e, f, few, state)
check("state_avx2", STATE, 32, 48, few, state, "--target=x86-64-v3")
check("turned", TURNED, 48, 40, few, lambda q, s: state(q, s, turned=True))
check("alone", ALONE, 33, 64, few, lambda q, s: state(q, s, divides=False))
check("inside", INSIDE, 33, 64, few, lambda q, s: state(q, s, divides=False))
check("swapped", SWAPPED, 17, 20, [(3, 3)], lambda q, s: state(q, s, swapped=True), fused=False)
# A matrix that does not stay near is a product like others.
check("large", ALONE, 256, 256, [(2, 64)], lambda q, s: state(q, s, divides=False), fused=False)
finish()
