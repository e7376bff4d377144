"""The .npy and .npz readers: what NumPy writes comes back bit by bit; what is malformed is an error, never a crash.

RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin/../test/runtime/bin/io-read %t
"""
import io
import os
import struct
import sys
import zipfile

import numpy as np

from runs import expect, expect_error, finish, run

reader, folder = sys.argv[1:]
path, out = os.path.join(folder, "in.npy"), os.path.join(folder, "out.npy")
random = np.random.default_rng(7)
NAMES = {"f4": "f32", "f2": "f16", "f8": "f64", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64", "u1": "u8",
         "b1": "bool"}


def read(kind, data, key="", dtype="f32", mode="exact"):
    if data is not None:
        with open(path, "wb") as file:
            file.write(data)
    if os.path.exists(out):
        os.remove(out)
    return run(reader, kind, path, key, dtype, mode, out)


def saved(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def same(expected, what):
    found = np.load(out)
    expect(found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes(),
           f"{what}: expected {expected!r}, found {found!r}")


# Every type, shape and order.
for code, name in NAMES.items():
    for shape in [(), (1,), (0, 3), (5,), (2, 3), (3, 1, 4, 2), (1,) * 16]:
        array = (random.standard_normal(shape) * 50).astype(code)
        for order in "CF":
            done = read("npy", saved(np.asarray(array, order=order)), dtype=name)
            expect(done.returncode == 0, f"{code} {shape} {order}: {done.stderr}")
            same(array, f"{code} {shape} {order}")

# Versions 2 and 3 of the format.
for version in [(2, 0), (3, 0)]:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.arange(6, dtype="f4").reshape(2, 3), version=version)
    expect(read("npy", stream.getvalue()).returncode == 0, f"version {version}")
    same(np.arange(6, dtype="f4").reshape(2, 3), f"version {version}")

# Errors that name the cause.
good = saved(np.arange(6, dtype="f4"))
for array, dtype, message in [
    (np.zeros(3, ">f4"), "f32", "expected little-endian data, found '>f4'"),
    (np.zeros(3, "c8"), "f32", "element type '<c8' is not supported"),
    (np.zeros(3, "f8"), "f32", "expected element type f32, found f64 (--convert rounds it)"),
    (np.zeros(3, "i4"), "f32", "expected element type f32, found i32"),
    (np.zeros(3, "U4"), "f32", "element type '<U4' is not supported"),
    (np.zeros(3, [("a", "f4")]), "f32", "structured element types are not supported"),
    (np.array([[1, 2], [3, 1 << 40]]), "i32", "element [1, 1] = 1099511627776 does not fit i32"),
    (np.array([0, -129]), "i8", "element [1] = -129 does not fit i8"),
    (np.array([0, 2]), "bool", "element [1] = 2 does not fit bool"),
    (np.asfortranarray([[0, 1, 2], [3, 70000, 5]]), "i16", "element [1, 1] = 70000 does not fit i16"),
]:
    expect_error(read("npy", saved(array), dtype=dtype), message, array.dtype)
expect_error(read("npy", good + b"\0"), "24 bytes expected for f32 [6], 25 found", "one byte more")
expect_error(read("npy", good[:-1]), "24 bytes expected for f32 [6], 23 found: the file is truncated", "one less")
expect_error(read("npy", b""), "not a .npy file", "empty")
expect_error(run(reader, "npy", folder + "/absent", "", "f32", "exact", out), "cannot be opened", "absent")
expect_error(run(reader, "npy", folder, "", "f32", "exact", out), "expected a file, found a folder", "folder")


def with_header(text, data=b"\0" * 24):
    text = text.encode("latin1")
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text + data


for header, message in [
    ("{'descr': '<f4', 'fortran_order': False, 'shape': (-6,), }", "non-negative integers"),
    ("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "non-negative integers"),
    ("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "too large"),
    ("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 17 + "), }", "more than 16 axes"),
    ("{'descr': '<f4', 'fortran_order': False}", "'shape' is missing"),
    ("{'descr': '<f4', 'fortran_order': 0, 'shape': (6,)}", "True or False"),
    ("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", "unexpected key 'descr'"),
    ("{'descr': '<f4', 'fortran_order': False, 'shape': 6}", "a tuple"),
    ("{'descr': '<f4', 'fortran_order': False, 'shape': (6", "'shape'"),
    ("{'descr': '<f4", "'descr'"),
    ("{'descr': '" + "x" * 100 + "'", "'descr'"),
    ("", "expected '{'"),
    ("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), } rubbish", "text after '}'"),
]:
    expect_error(read("npy", with_header(header)), message, header)

# Every truncation, and every byte of the header changed: an error or a result, never a crash.
for length in range(0, len(good), 3):
    expect_error(read("npy", good[:length]), path, f"first {length} bytes")
for position in range(0, 70, 2):
    damaged = bytearray(good)
    damaged[position] ^= random.integers(1, 256)
    read("npy", bytes(damaged))

# .npz as numpy.savez writes it.
stream = io.BytesIO()
arrays = {"a": random.standard_normal((3, 4)).astype("f4"), "b": np.arange(5, dtype="f4")}
np.savez(stream, **arrays)
archive = stream.getvalue()
for key, array in arrays.items():
    done = read("npz", archive, key=key)
    expect(done.returncode == 0, f"npz {key}: {done.stderr}")
    same(array, f"npz {key}")
expect_error(read("npz", archive, key="c"), "no member 'c' (found: a, b)")
expect_error(read("npz", archive), "expected one member, found 2: a, b")
stream = io.BytesIO()
np.savez_compressed(stream, a=arrays["a"])
expect_error(read("npz", stream.getvalue()), "numpy.savez instead of savez_compressed")
expect_error(read("npz", archive[:-1], key="a"), "end record of the .npz archive is missing")
expect_error(read("npz", b"PK\3\4", key="a"), "not a .npz archive")
damaged = bytearray(archive)
damaged[archive.index(arrays["a"].tobytes()) + 5] ^= 1
expect_error(read("npz", bytes(damaged), key="a"), "the checksum does not match")
stream = io.BytesIO()
with zipfile.ZipFile(stream, "w") as file:
    file.comment = b"a comment " * 20
    with file.open("only.npy", "w", force_zip64=True) as member:
        member.write(good)
expect(read("npz", stream.getvalue()).returncode == 0, "a comment, zip64 local header, only member")
directory = archive.index(b"PK\1\2")
for position in list(range(directory, len(archive))):
    damaged = bytearray(archive)
    damaged[position] ^= random.integers(1, 256)
    read("npz", bytes(damaged), key="a")
for length in range(0, len(archive), 37):
    expect_error(read("npz", archive[:length], key="a"), path, f"npz: first {length} bytes")
finish()
