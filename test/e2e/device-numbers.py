# RUN: env HEED_TARGET=opencl %python %s %heed_bin/heedc %t
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
# REQUIRES: opencl
"""f16 and bf16 on a device without them: every number widened, and f32 rounded at, above and below every place where the nearest changes, bit by bit.
A table in f64, of which a constant that were an f32 would lose half of the digits."""
import sys

import numpy as np

import programs
from runs import expect, finish

programs.start(*sys.argv[1:])
SOURCE = """model m(h: f16[N], g: bf16[N], x: f32[M]) {
  return a[n] = f32(h[n]), b[n] = f32(g[n]), c[m] = f16(x[m]), d[m] = bf16(x[m]), t[k:4096] = 1.0003 ^ k
}"""
bits = np.arange(1 << 16, dtype=np.uint32)
halves = bits.astype(np.uint16).view(np.float16)
wide = halves.astype(np.float32), (bits << 16).view(np.float32)


def around(finite):
    """The numbers, the middles between neighbours, and what is just beside these."""
    finite = np.sort(finite)
    middles = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
    return np.concatenate([finite, middles, np.nextafter(middles, np.float32(np.inf)), np.nextafter(middles, np.float32(-np.inf))])


with np.errstate(all="ignore"):
    x = np.concatenate([around(number[np.isfinite(number)]) for number in wide] + [np.array(
        [np.inf, -np.inf, np.nan, -np.nan, 65519.996, 65520, -65520, 3.3961775e38, 3.4028235e38, -3.4028235e38, 1e-45, 2**-25, 1.0000001 * 2**-25], np.float32)])
    x = np.concatenate([x, np.array([0x7f800001, 0xff8fffff, 0x7fffffff], np.uint32).view(np.float32)])
    f16 = x.astype(np.float16)
raw = x.view(np.uint32)
bf16 = np.where(np.isnan(x), raw | 0x400000, raw + 0x7fff + (raw >> 16 & 1)) >> 16

program = programs.compile("halves", SOURCE, "--target=opencl")
found = programs.outputs(program, {"h": halves, "g": bits.astype(np.uint16).view("V2"), "x": x}, list("abcdt"))
expect(isinstance(found, dict), getattr(found, "stderr", ""))


def check(what, got, want, given):
    """Bit by bit, but for which NaN it is."""
    off = np.flatnonzero((got.view(f"u{got.itemsize}") != want.view(f"u{got.itemsize}")) & ~(np.isnan(got) & np.isnan(want)))
    expect(got.shape == want.shape and not off.size, f"{what}: {off.size} of {got.size} differ: {[(given[k], got[k], want[k]) for k in off[:4]]}")


check("f16 to f32", found["a"], wide[0], halves)
check("bf16 to f32", found["b"], wide[1], bits)
check("f32 to f16", found["c"], f16, x)
widened = [(part.view(np.uint16).astype(np.uint32) << 16).view(np.float32) for part in (found["d"], bf16.astype(np.uint16))]
check("f32 to bf16", *widened, x)
check("powers", found["t"], (1.0003 ** np.arange(4096.0)).astype(np.float32), np.arange(4096))
finish()
