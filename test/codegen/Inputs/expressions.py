"""The pipelines of expressions.mlir against NumPy."""
import math
import sys

import numpy as np

from kernels import Kernels

kernels = Kernels(sys.argv[1], sys.argv[2])
np.seterr(all="ignore")
f32, inf, nan = np.float32, np.inf, np.nan

special = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1e-3, 3e38, -3e38, 65504.0, 7.3, -7.7, inf, -inf, nan]
a, b = (x.ravel().astype(f32) for x in np.meshgrid(special, special))


def run(name, inputs, count, dtype):
    out = np.zeros((count, inputs[0].size), dtype)
    kernels(name, inputs, [out])
    return out


def compare(what, k, got, want, rtol=0.0, atol=0.0):
    same = (got == want) | (np.isnan(got) & np.isnan(want)) if got.dtype.kind == "f" else got == want
    if rtol or atol:
        same |= np.abs(got.astype(np.float64) - want) <= rtol * np.abs(want) + atol
    bad = np.flatnonzero(~same)
    assert not bad.size, f"{what} {k}: at {bad[0]} got {got[bad[0]]}, expected {want[bad[0]]}"


rounded = np.where(np.abs(a) < 2 ** 22, np.rint(a), np.nan)
floats = [a + b, a - b, a * b, a / b, -a, np.maximum(a, b), np.minimum(a, b), np.fmax(a, b), np.fmin(a, b), np.sqrt(a),
          np.floor(a), np.ceil(a), np.rint(a), np.trunc(a), np.abs(a), f32(1) / np.sqrt(a), a.astype(np.float16).astype(f32), a,
          a + f32(inf), a - a, a * f32(0), (a + f32(12582912)) - f32(12582912), (a * b + f32(1)) - (a * b + f32(1)),
          np.isnan(a).astype(f32), np.where(np.isnan(a), nan, 1)]
for k, (got, want) in enumerate(zip(run("floats", [a, b], len(floats), f32), floats)):
    compare("floats", k, got, want.astype(f32))
    if k not in (5, 6, 7, 8):  # the sign of a zero is the one thing that min and max leave open
        assert (np.signbit(got) == np.signbit(want))[got == 0].all(), f"floats {k}: sign of zero"
got = run("floats", [a, b], len(floats), f32)[21]
compare("magic rounding", 21, got[np.isfinite(rounded)], rounded[np.isfinite(rounded)])

total = a * b + f32(1)
relaxed = [np.isnan(total), 1 + np.isnan(total), 2 - (np.isnan(total) | np.isnan(a)), 1 + (total == inf), 1 + np.isnan(total),
           np.exp(total), np.log(total), np.maximum(total, f32(1)), np.minimum(f32(1), total), np.fmax(total, f32(1)),
           f32(1) / (f32(1) + np.exp(-total))]
for k, (got, want) in enumerate(zip(run("relaxed", [a, b], len(relaxed), f32), relaxed)):
    compare("relaxed", k, got, want.astype(f32), rtol=1e-5, atol=1e-37)

unordered = np.isnan(a) | np.isnan(b)
ordered = [a == b, a > b, a >= b, a < b, a <= b, (a < b) | (a > b), ~unordered]
comparisons = ordered + [(a == b) | unordered, (a > b) | unordered, (a >= b) | unordered, (a < b) | unordered,
                         (a <= b) | unordered, (a != b), unordered]
for k, (got, want) in enumerate(zip(run("comparisons", [a, b], len(comparisons), np.bool_), comparisons)):
    compare("comparisons", k, got, want)

x = np.concatenate([np.linspace(-30, 30, 501), [0.0, 1e-6, -1e-6, 88.0, -100.0]]).astype(f32)
d = x.astype(np.float64)
functions = [np.exp(d), np.log(np.abs(d)), np.sin(d), np.cos(d), np.tan(d), np.tanh(d), np.abs(d) ** 1.5, d * d + 1.5,
             np.array([math.erf(t) for t in d]), np.expm1(d), np.expm1(np.minimum(d, 1.5)), np.exp(np.minimum(d, 1.5))]
for k, (got, want) in enumerate(zip(run("functions", [x], len(functions), f32), functions)):
    compare("functions", k, got, want, rtol=2e-6, atol=2e-7)
# exp has a bound of its own, 1.5e-7, over each exponent that f32 has; beyond, it is 0 or infinity.
dense = np.arange(0, 0x7f800000, 1531, np.uint32)
dense = np.concatenate([dense, dense | 0x80000000]).view(f32)
with np.errstate(over="ignore", under="ignore"):
    exact = np.exp(dense.astype(np.float64))
    want = np.where(exact < 2.0**-126, 0, exact.astype(f32))
    compare("exp over all exponents", 0, run("functions", [dense], len(functions), f32)[0], want, rtol=1.5e-7)
    # expm1 keeps its digits near 0, 2e-7, too; where it is known that nothing overflows, both are shorter.
    low = np.minimum(dense.astype(np.float64), 1.5)
    for k, want in ((9, np.expm1(dense.astype(np.float64))), (10, np.expm1(low)), (11, np.where(np.exp(low) < 2.0**-126, 0, np.exp(low)))):
        compare("expm1 and exp over all exponents", k, run("functions", [dense], len(functions), f32)[k], want.astype(f32), rtol=2e-7, atol=2.0**-149)
# erf's is 3.5e-7, and it never leaves [-1, 1].
near = np.arange(0x3a000000, 0x41000000, 211, np.uint32)  # 5e-4 to 8, where it is neither linear nor 1
near = np.concatenate([dense.view(np.uint32), near, near | 0x80000000]).view(f32)
got = run("functions", [near], len(functions), f32)[8]
compare("erf over all exponents", 8, got, np.array([math.erf(t) for t in near.tolist()]), rtol=3.5e-7, atol=2.0**-126)
assert (np.abs(got) <= 1).all(), "erf beyond 1"
edges = np.array([inf, -inf, nan, 0.0, -0.0, 89.0, -110.0, 1e38], f32)
edge = run("functions", [edges], len(functions), f32)
compare("exp at edges", 0, edge[0], np.exp(edges), rtol=2e-6)
compare("expm1 at edges", 9, edge[9], np.expm1(edges), rtol=2e-6)
compare("low expm1 at edges", 10, edge[10], np.expm1(np.minimum(edges, f32(1.5))), rtol=2e-6)
compare("low exp at edges", 11, edge[11], np.exp(np.minimum(edges, f32(1.5))), rtol=2e-6)
assert np.signbit(edge[9:11, 4]).all(), "expm1 of -0"
compare("log at edges", 1, edge[1], np.log(np.abs(edges)), rtol=2e-6)
compare("tanh at edges", 5, edge[5], np.tanh(edges), rtol=2e-6)
compare("erf at edges", 8, edge[8], np.array([math.erf(t) for t in edges], f32), rtol=2e-6)

values = [1, -1, 2, -2, 3, 7, -7, 8, -9, 100, -128, 255, 12345, -54321]
a, b = (v.ravel().astype(np.int32) for v in np.meshgrid(values, values))
ua, ub = a.view(np.uint32), b.view(np.uint32)
quotient = np.trunc(a.astype(np.float64) / b).astype(np.int32)
integers = [a + b, a - b, a * b, quotient, a - quotient * b, a // b, -((-a) // b), a % 3, np.maximum(a, b),
            np.minimum(a, b), a & b, a | b, a ^ b, a << 3, a >> 3, ua >> 3, ua // ub, ua % ub, np.maximum(ua, ub),
            np.minimum(ua, ub), np.abs(a), ua < ub, -(ua < ub).astype(np.int32), a.astype(np.int8), a.astype(np.uint8), a, a & 1,
            a // 3]
for k, (got, want) in enumerate(zip(run("integers", [a, b], len(integers), np.int32), integers)):
    compare("integers", k, got, want.astype(np.int64).astype(np.int32))

n = 37
rng = np.random.default_rng(1)
h, j, m = rng.standard_normal(n).astype(np.float16), rng.integers(-128, 128, n).astype(np.int8), rng.random(n) < 0.5
big = rng.integers(-2 ** 60, 2 ** 60, n)
w, r = np.zeros(n, f32), np.zeros(n, np.int64)
kernels("types", [h, j, m, big, np.int32(-5), f32(0.5), np.bool_(True), np.int64(2 ** 40)], [w, r])
compare("types", 0, w, np.where(~m, h.astype(f32), j.astype(f32)) * f32(0.5))
compare("types", 1, r, big - 5 + 2 ** 40)
