"""Conversions between element types against NumPy's, on every f16 and bf16 value and on the ties between them.

RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin/../test/runtime/bin/io-read %t
"""
import os
import sys

import numpy as np

import safetensors_file
from runs import expect, expect_error, finish, run

reader, folder = sys.argv[1:]
path, out = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out.npy")


def convert(array, dtype, to, mode="exact"):
    safetensors_file.write(path, {"t": array}, {"t": dtype})
    done = run(reader, "safetensors", path, "t", to, mode, out)
    expect(done.returncode == 0, f"{dtype} to {to}: {done.stderr}")
    # NumPy shows bf16 as two bytes without a type.
    return np.load(out).view("u2") if to == "bf16" else np.load(out)


def same(found, expected, what):
    """Equal bits, but any NaN for a NaN."""
    if expected.dtype.kind == "f":
        nan = np.isnan(expected)
        expect(np.array_equal(nan, np.isnan(found)), f"{what}: NaN")
        found, expected = found[~nan], expected[~nan]
    expect(found.dtype == expected.dtype and found.tobytes() == expected.tobytes(), f"{what}: values differ")


def to_bf16(value):
    """Nearest even, from float64, by arithmetic that has nothing to do with bits."""
    value = np.asarray(value, "f8")
    _, exponent = np.frexp(value)
    step = np.maximum(exponent - 8, -133)
    with np.errstate(over="ignore"):
        rounded = np.ldexp(np.rint(np.ldexp(value, -step)), step).astype("f4")
    return (rounded.view("u4") >> 16).astype("u2")


everything = np.arange(1 << 16, dtype="u2")
halves, brains = everything.view("f2"), (everything.astype("u4") << 16).view("f4")
same(convert(halves, "F16", "f32"), halves.astype("f4"), "f16 to f32")
same(convert(everything, "BF16", "f32"), brains, "bf16 to f32")

# Each representable value, the midpoint to the next one, and what lies just beside the midpoint.
for name, values, rounded in [("f16", halves, lambda v: v.astype("f2").view("u2")), ("bf16", brains, to_bf16)]:
    values = np.sort(values[np.isfinite(values)].astype("f8"))
    middle = (values[1:] + values[:-1]) / 2
    for wide in ["f4", "f8"]:
        tests = np.concatenate([values, middle, np.nextafter(middle.astype(wide), np.array(np.inf, wide)),
                                np.nextafter(middle.astype(wide), np.array(-np.inf, wide))]).astype(wide)
        with np.errstate(over="ignore"):
            expected = rounded(tests)
        found = convert(tests, safetensors_file.DTYPES[wide], name, "convert").view("u2")
        expect(np.array_equal(found, expected), f"{wide} to {name}: {np.flatnonzero(found != expected)[:5]}")
special = np.array([np.inf, -np.inf, 65520, -65520, 65519.996, 3.4e38, 1e-45, -0.0], "f4")
with np.errstate(over="ignore"):
    same(convert(special, "F32", "f16", "convert"), special.astype("f2"), "f32 to f16, special values")
nan = np.array([0x7f800001, 0xffffffff, 0x7fc00000], "u4").view("f4")
expect(np.isnan(convert(nan, "F32", "f16", "convert")).all(), "NaN stays NaN in f16")
expect(((convert(nan, "F32", "bf16", "convert") & 0x7fff) > 0x7f80).all(), "NaN stays NaN in bf16")

# A type that does not hold all values is rounded to only where that is asked for.
for wide, to in [("F32", "f16"), ("F32", "bf16"), ("F16", "bf16"), ("BF16", "f16"), ("F64", "f32"), ("F64", "bf16")]:
    safetensors_file.write(path, {"t": np.zeros(2, {"F32": "f4", "F64": "f8"}.get(wide, "u2"))}, {"t": wide})
    expect_error(run(reader, "safetensors", path, "t", to, "exact", out), f"expected element type {to}, found {wide.lower()} (--convert rounds it)")

for wide, to, limits in [("i8", "i32", "i4"), ("i8", "i16", "i2"), ("i4", "i8", "i1"), ("i8", "u8", "u1")]:
    info = np.iinfo(limits)
    values = np.array([info.min, 0, info.max], wide)
    same(convert(values, safetensors_file.DTYPES[wide], to), values.astype(limits), f"{wide} to {to}")
    for beyond in [info.min - 1, info.max + 1]:
        safetensors_file.write(path, {"t": np.array([0, beyond], wide)})
        expect_error(run(reader, "safetensors", path, "t", to, "exact", out), f"element [1] = {beyond} does not fit")
same(convert(np.array([True, False]), "BOOL", "i32"), np.array([1, 0], "i4"), "bool to i32")
safetensors_file.write(path, {"t": np.array([1, 7], "u1")}, {"t": "BOOL"})
expect_error(run(reader, "safetensors", path, "t", "bool", "exact", out), "element [1] = 7 does not fit bool")
finish()
