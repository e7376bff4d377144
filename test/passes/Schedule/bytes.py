# RUN: %python %s %heed_bin %t
"""Products of bytes against NumPy's, in the whole range of both, for both widths of vectors: sizes around tiles and pairs, empty sums, sums that wrap,
weights, batches, and products of one operand. Integers agree to the last bit."""
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
rng = np.random.default_rng(8)
PLAIN = "model m(a: i8[N, K], b: i8[K, M]) { return y[n,m] = sum(k) a[n,k] * b[k,m] }"
TURNED = "model m(a: i8[K, N], b: i8[M, K]) { return y[n,m] = sum(k) b[m,k] * a[k,n] }"
BATCH = "model m(a: i8[B, N, K], w: i8[B, K, M]) { return y[b,n,m] = sum(k) a[b,n,k] * w[b,k,m] }"
INNER = "model m(a: i8[N, K, C], b: i8[C, M, K]) { return y[n,m] = sum(k, c) a[n,k,c] * b[c,m,k] }"
SCALED = "model m(a: i8[N, K], b: i8[K, M], s: f32[M]) { return y[n,m] = s[m] * (sum(k) a[n,k] * b[k,m]) }"
SHARED = "model m(a: i8[N, B, K], b: i8[K, M]) { return y[i,n,m] = sum(k) a[n,i,k] * b[k,m] }"
SEVERAL = """model m(a: i8[B, N, K], b, c, d: i8[B, K, M]) {
  x[i,n,m] = sum(k) a[i,n,k] * b[i,k,m]
  y[i,n,m] = sum(k) a[i,n,k] * c[i,k,m]
  z[i,n,m] = sum(k) a[i,n,k] * d[i,k,m]
  return x, y, z
}"""
WEIGHT = """model m(a: i8[N, K]) {
  param w: i8[%d, %d] @ "w"
  return y[n,m] = sum(k) a[n,k] * w[m,k]
}"""
THREE = """model m(a: i8[N, K]) {
  param q, k, v: i8[%d, %d] @ "q", "k", "v"
  x[n,m] = sum(i) a[n,i] * q[m,i]
  y[n,m] = sum(i) a[n,i] * k[m,i]
  z[n,m] = sum(i) a[n,i] * v[m,i]
  return x, y, z
}"""


def compiled(name, text, target, *options, weights=None):
    source, library, stored = folder / f"{name}.heed", folder / f"{name}-{target}.so", folder / f"{name}.safetensors"
    source.write_text(text)
    if weights:
        safetensors_file.write(stored, weights)
        options = (*options, "--weights", stored)
    done = run(heedc, source, f"--target={target}", "--emit=shared", *options, "-o", library)
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    return heed.load(library, "m", weights=stored if weights else None)


def drawn(*shape):
    return rng.integers(-128, 128, shape).astype(np.int8)


def check(name, found, wanted):
    expect(found.shape == wanted.shape and np.array_equal(found, wanted), f"{name}: {np.abs(found.astype(np.int64) - wanted).max(initial=0)} off")


def wrapped(x):
    return x.astype(np.int64).astype(np.int32)


SIZES = [(n, k, m) for n in (0, 1, 7, 9, 70) for k in (0, 1, 2, 3, 64, 65, 1027) for m in (1, 16, 49, 100)]
words = set(pathlib.Path("/proc/cpuinfo").read_text().split())
VNNI = {"avx512_bf16", "avx512_bitalg", "avx512_vbmi2", "avx512_vnni", "avx512ifma", "avx512vbmi"}
AVX512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"}
for target in ("x86-64-v3", *["x86-64-v4"] * (AVX512 <= words), *["x86-64-v4-vnni"] * (VNNI <= words)):
    plain, turned = (compiled(name, text, target) for name, text in (("plain", PLAIN), ("turned", TURNED)))
    for n, k, m in SIZES:
        a, b = drawn(n, k), drawn(k, m)
        wanted = wrapped(a.astype(np.int64) @ b)
        check(f"plain {n} {k} {m}", plain(a=a, b=b), wanted)
        check(f"turned {n} {k} {m}", turned(a=np.ascontiguousarray(a.T), b=np.ascontiguousarray(b.T)), wanted)
    # Both products of a pair at their largest; 2^17 of them are 2^31, which i32 wraps.
    for k in (2, 3, (1 << 17) - 1, 1 << 17, (1 << 17) + 5):
        a, b = np.full((9, k), -128, np.int8), np.full((k, 17), -128, np.int8)
        check(f"largest {k}", plain(a=a, b=b), wrapped(a.astype(np.int64) @ b))
        check(f"opposite {k}", plain(a=a, b=~b), wrapped(a.astype(np.int64) @ ~b))
    batch = compiled("batch", BATCH, target)
    for shape in ((2, 9, 33, 50), (3, 1, 2, 1), (0, 4, 4, 4), (2, 5, 0, 3)):
        a, w = drawn(*shape[:3]), drawn(shape[0], *shape[2:])
        check(f"batch {shape}", batch(a=a, w=w), wrapped(a.astype(np.int64) @ w))
    inner = compiled("inner", INNER, target)
    for n, k, c, m in ((9, 5, 7, 50), (3, 1, 1, 1), (8, 16, 3, 48)):
        a, b = drawn(n, k, c), drawn(c, m, k)
        check(f"inner {n} {k} {c} {m}", inner(a=a, b=b), wrapped(np.einsum("nkc,cmk->nm", a.astype(np.int64), b)))
    scaled = compiled("scaled", SCALED, target, "--set=K=66", "--set=M=96")
    a, b, s = drawn(19, 66), drawn(66, 96), rng.uniform(-1, 1, 96).astype("f4")
    check("scaled", scaled(a=a, b=b, s=s), s * wrapped(a.astype(np.int64) @ b).astype("f4"))
    # Where all rows are one task, what is no weight is packed in it: rows around a tile, terms around a step, columns around a panel, batches of as many
    # as a sum has products, several products of one operand.
    for n in (1, 20, 64):
        known = compiled(f"known{n}", PLAIN, target, f"--set=N={n}")
        outer = compiled(f"outer{n}", BATCH, target, f"--set=N={n}", "--set=B=3")
        for k, m in ((1, 1), (67, 48), (64, 49), (0, 5), (2050, 130)):
            a, b = drawn(n, k), drawn(k, m)
            check(f"known {n} {k} {m}", known(a=a, b=b), wrapped(a.astype(np.int64) @ b))
            a, w = drawn(3, n, k), drawn(3, k, m)
            check(f"outer {n} {k} {m}", outer(a=a, w=w), wrapped(a.astype(np.int64) @ w))
    shared = compiled("shared", SHARED, target, "--set=N=20", "--set=B=3")
    a, b = drawn(20, 3, 67), drawn(67, 50)
    check("shared", shared(a=a, b=b), wrapped(np.einsum("nik,km->inm", a.astype(np.int64), b)))
    several = compiled("several", SEVERAL, target, "--set=N=20", "--set=B=3")
    a, b, c, d = drawn(3, 20, 67), *(drawn(3, 67, 50) for _ in "bcd")
    for name, found, right in zip("xyz", several(a=a, b=b, c=c, d=d), (b, c, d)):
        check(f"several {name}", found, wrapped(a.astype(np.int64) @ right))
    # A weight is packed once: one row, few, more than a task has; of odd and even length, and beyond the caches.
    for k, m in ((33, 50), (64, 48), (1030, 600)):
        w = drawn(m, k)
        weight = compiled(f"weight{k}", WEIGHT % (m, k), target, weights={"w": w})
        three = {name: drawn(m, k) for name in "qkv"}
        fused = compiled(f"three{k}", THREE % (m, k), target, weights=three)
        for n in (0, 1, 2, 9, 70, 200):
            a = drawn(n, k)
            check(f"weight {n} {k} {m}", weight(a=a), wrapped(a.astype(np.int64) @ w.T))
            outs = dict(zip("xyz", fused(a=a)))
            for result, name in zip("xyz", "qkv"):
                check(f"three {n} {k} {m} {name}", outs[result], wrapped(a.astype(np.int64) @ three[name].T))
finish()
