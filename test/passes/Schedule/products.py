# RUN: env PYTHONPATH=%heed_src/python:%heed_src/test/support %python %s %heed_bin %t
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""--products=bf16 against NumPy, which rounds to nearest and ties to even and sums in f64, and against the reference backend: sizes around tiles, pairs and
blocks, one row, empty sums and rows, several products of one operand, an epilogue, ties, infinity and NaN; with dot products of bf16 and, where the target
has none, in f32."""
import pathlib
import shutil
import sys

import numpy as np

import heed
import safetensors_file
from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
rng = np.random.default_rng(17)
LINEAR = """model m(x: f32[N, %d]) {
  param w: f32[%d, %d] @ "w"
  return y[n,o] = sum(i) x[n,i] * w[o,i]
}"""
TURNED = """model m(x: f32[N, %d]) {
  param w: f32[%d, %d] @ "w"
  return y[n,o] = sum(i) w[i,o] * x[n,i]
}"""
GATED = """model m(x: f32[N, %d]) {
  param g, u: f32[%d, %d] @ "g", "u"
  a[n,o] = sum(i) x[n,i] * g[o,i]
  b[n,o] = sum(i) x[n,i] * u[o,i]
  return y[n,o] = a[n,o] / (1 + exp(-a[n,o])) * b[n,o]
}"""
# Sums over two indices, products of a batch, rows that lie apart, a factor that is computed.
SHAPES = {
    "inner": ("N, K, C", "C, M, K", "y[n,m] = sum(k, c) x[n,k,c] * w[c,m,k]", "nkc,cmk->nm"),
    "batch": ("N, C, K", "C, M, K", "y[n,c,m] = sum(k) x[n,c,k] * w[c,m,k]", "nck,cmk->ncm"),
    "apart": ("K, C, N", "M, K", "y[c,n,m] = sum(k) x[k,c,n] * w[m,k]", "kcn,mk->cnm"),
    "scaled": ("N, K, C", "M, K", "y[c,n,m] = sum(k) (x[n,k,c] * 0.5) * w[m,k]", "nkc,mk->cnm"),
}
WINDOW = """model m(x: f32[N, %d]) {
  param w: f32[%d, 3, %d] @ "w"
  return y[n:N - 2,o] = sum(t, c) x[n + t, c] * w[o,t,c]
}"""
OWN = "model m(x: bf16[N, K], w: bf16[M, K]) { return y[n,o] = sum(i) f32(x[n,i]) * f32(w[o,i]) }"


def narrow(x):
    """The bits of bf16: to nearest, ties to even; NaN stays one."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7fc0), rounded)


def wide(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def rounded(x):
    return wide(narrow(x)).astype(np.float64)


def stored(name, arrays):
    path = folder / f"{name}.safetensors"
    safetensors_file.write(path, {key: narrow(array) for key, array in arrays.items()}, {key: "BF16" for key in arrays})
    return path


def compiled(name, text, target, *options, arrays=None):
    source, library = folder / f"{name}.heed", folder / f"{name}-{target}.so"
    source.write_text(text)
    weights = stored(name, arrays) if arrays else None
    more = ("--weights", weights) if arrays else ()
    how = ("--backend=reference",) if target == "reference" else (f"--target={target}",)
    done = run(heedc, source, "--products=bf16", *how, "--emit=shared", *more, *options, "-o", library)
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    return heed.load(library, "m", weights=weights)


def check(name, found, wanted, size):
    """`size` is what an element's terms add up to without their signs."""
    expect(found.shape == wanted.shape, f"{name}: {found.shape}")
    error = np.abs(found - wanted) / np.maximum(size, 1e-30)
    expect(not (error > 2e-6).any(), f"{name}: {error.max(initial=0)} off")
    expect(np.isfinite(found).all(), f"{name}: not finite")


def product(x, w):
    return rounded(x) @ rounded(w).T, np.abs(rounded(x)) @ np.abs(rounded(w)).T


words = set(pathlib.Path("/proc/cpuinfo").read_text().split())
DOT = {"avx512_bf16", "avx512_bitalg", "avx512_vbmi2", "avx512_vnni", "avx512ifma", "avx512vbmi"}
for target in ("reference", "x86-64-v3", *["x86-64-v4-vnni"] * (DOT <= words)):
    # Beside the caches and in them; long and short sums, odd ones, none; columns around a panel.
    for k, m in ((1, 1), (2, 48), (33, 50), (64, 47), (0, 5), (1030, 97), (2049, 49), (1024, 600), (1022, 1536), (2048, 1537)):
        if target == "reference" and k * m > 100000:
            continue
        w = rng.normal(size=(m, k)).astype("f4")
        linear = compiled(f"linear{k}", LINEAR % (k, m, k), target, arrays={"w": w})
        turned = compiled(f"turned{k}", TURNED % (k, k, m), target, arrays={"w": w.T})
        for n in (0, 1, 2, 8, 9, 70, 130):
            x = rng.normal(size=(n, k)).astype("f4")
            check(f"{target} linear {n} {k} {m}", linear(x=x), *product(x, w))
            check(f"{target} turned {n} {k} {m}", turned(x=x), *product(x, w))
    for k, m in ((65, 50), (256, 1100), (1023, 1100)):
        if target == "reference" and k * m > 100000:
            continue
        g, u = (rng.normal(size=(m, k)).astype("f4") / k for _ in "gu")
        gated = compiled(f"gated{k}", GATED % (k, m, k), target, arrays={"g": g, "u": u})
        for n in (0, 1, 3, 8, 70):
            x = rng.normal(size=(n, k)).astype("f4")
            a, b = product(x, g)[0], product(x, u)[0]
            check(f"{target} gated {n} {k} {m}", gated(x=x), a / (1 + np.exp(-a)) * b, product(x, u)[1])
    for name, (given, held, line, how) in SHAPES.items():
        for k, c, m in ((7, 3, 50), (33, 2, 48), (300, 4, 130)):
            extents = {"K": k, "C": c, "M": m}
            fixed = lambda text: "".join(str(extents.get(x, x)) for x in text)
            shape = [extents[x] for x in held.split(", ")]
            w = rng.normal(size=shape).astype("f4")
            text = f'model m(x: f32[{fixed(given)}]) {{\n  param w: f32[{fixed(held)}] @ "w"\n  return {line}\n}}'
            made = compiled(f"{name}{k}", text, target, arrays={"w": w})
            for n in (1, 9, 70):
                x = rng.normal(size=[{**extents, "N": n}[x] for x in given.split(", ")]).astype("f4")
                a, b = rounded(x * np.float32(0.5) if name == "scaled" else x), rounded(w)
                check(f"{target} {name} {n} {k} {m}", made(x=x), np.einsum(how, a, b), np.einsum(how, abs(a), abs(b)))
    w = rng.normal(size=(50, 3, 20)).astype("f4")
    window, x = compiled("window", WINDOW % (20, 50, 20), target, arrays={"w": w}), rng.normal(size=(40, 20)).astype("f4")
    a, b = np.stack([rounded(x)[t:38 + t] for t in range(3)], 1), rounded(w)
    check(f"{target} window", window(x=x), np.einsum("ntc,otc->no", a, b), np.einsum("ntc,otc->no", abs(a), abs(b)))
    # A model's own bf16: what it has is exact, and not rounded again.
    own = compiled("own", OWN, target)
    for n, k, m in ((1, 7, 3), (9, 64, 50), (20, 1031, 49), (0, 4, 4), (3, 0, 4)):
        x, w = rng.normal(size=(n, k)).astype("f4"), rng.normal(size=(m, k)).astype("f4")
        check(f"{target} own {n} {k} {m}", own(x=narrow(x), w=narrow(w)), *product(x, w))
    # Ties go to even; what is half a unit beyond the largest bf16 is infinite.
    w = np.eye(6, dtype="f4")
    ones = compiled("ones", LINEAR % (6, 6, 6), target, arrays={"w": w})
    x = np.array([[1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 1 + 2**-8 + 2**-20, 3.0e38, 2**-100]], "f4")
    expect(np.array_equal(ones(x=x), rounded(x)), f"{target} ties: {ones(x=x)}")
    x = np.array([[1, 2, np.inf, 0, 0, 0], [np.nan, 1, 1, 1, 1, 1], [3.4e38, 0, 0, 0, 0, 0]], "f4")
    with np.errstate(invalid="ignore"):
        wanted = rounded(x) @ w
    found = ones(x=x)
    expect(np.array_equal(found, wanted, equal_nan=True), f"{target} infinite: {found}")
    # Behind an odd number of terms nothing is added, whatever the last column is.
    w = rng.normal(size=(50, 33)).astype("f4")
    w[49, 32] = np.inf
    odd = compiled("odd", LINEAR % (33, 50, 33), target, arrays={"w": w})
    for n in (1, 9):
        x = np.abs(rng.normal(size=(n, 33))).astype("f4")
        found = odd(x=x)
        expect(np.isposinf(found[:, 49]).all() and np.isfinite(found[:, :49]).all(), f"{target} odd: {found}")
finish()
