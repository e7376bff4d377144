"""The .safetensors reader and sharded indices: good files, and every kind of malformed one.

RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin/../test/runtime/bin/io-read %t
"""
import json
import os
import struct
import sys

import numpy as np

import safetensors_file
from runs import expect, expect_error, finish, run

reader, folder = sys.argv[1:]
path, out = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out.npy")
random = np.random.default_rng(11)
tensors = {"b": random.standard_normal((3, 5)).astype("f4"), "a": np.arange(7, dtype="i8"), "empty": np.zeros((0, 4), "f4"),
           "scalar": np.array(3, "i4"), "odd": np.array([1, 2, 3], "u1"), "\u00e9\u4e2d\U0001f600\"\\\n": np.ones(2, "f4")}
header, data = safetensors_file.header_and_data(tensors)


def read(content, key="b", dtype="f32"):
    with open(path, "wb") as file:
        file.write(content)
    return run(reader, "safetensors", path, key, dtype, "exact", out)


types = {"f4": "f32", "i8": "i64", "i4": "i32", "u1": "u8"}
# Names are escaped as json.dumps does, and as raw UTF-8.
for text in [json.dumps(header), json.dumps(header, ensure_ascii=False)]:
    for name, array in tensors.items():
        done = read(safetensors_file.pack(text, data), name, types[array.dtype.str[1:]])
        expect(done.returncode == 0, f"{name}: {done.stderr}")
        found = np.load(out)
        expect(found.shape == array.shape and found.tobytes() == array.tobytes(), f"{name}: values")
expect_error(read(safetensors_file.pack(header, data), "c"), "no tensor 'c'")
expect(read(safetensors_file.pack({**header, "__metadata__": {"format": "pt"}}, data)).returncode == 0, "metadata")
unknown = {**header, "b": {**header["b"], "dtype": "F8_E4M3"}}
expect(read(safetensors_file.pack(unknown, data), "a", "i64").returncode == 0, "an unknown type beside")


def changed(**fields):
    """The header with fields of tensor b replaced."""
    return {**header, "b": {**header["b"], **fields}}


end = len(data)
for content, message in [
    (b"", "not a .safetensors file: 0 bytes"),
    (b"1234567", "not a .safetensors file: 7 bytes"),
    (struct.pack("<Q", 1 << 60), "header of 1152921504606846976 bytes, 0 found"),
    (struct.pack("<Q", 3) + b"{}", "header of 3 bytes, 2 found"),
    (safetensors_file.pack(header, data[:-1]), "the file is truncated"),
    (safetensors_file.pack(header, data + b"\0"), f"{end} bytes of data expected, {end + 1} found"),
    (safetensors_file.pack(changed(shape=[3, 6]), data), "72 bytes expected for F32 [3, 6], data_offsets give 60"),
    (safetensors_file.pack(changed(shape=[3, -5]), data), "a non-negative integer"),
    (safetensors_file.pack(changed(shape=[1 << 32, 1 << 32]), data), "too large"),
    (safetensors_file.pack(changed(shape=[1 << 64]), data), "an integer below 2^63"),
    (safetensors_file.pack(changed(shape=[1] * 17), data), "more than 16 axes"),
    (safetensors_file.pack(changed(shape=[3.0, 5]), data), "a non-negative integer"),
    (safetensors_file.pack(changed(data_offsets=[60, 0]), data), "lie outside"),
    (safetensors_file.pack(changed(data_offsets=[0, 1 << 62]), data), "lie outside"),
    (safetensors_file.pack(changed(data_offsets=[4, 64]), data), "expected"),
    (safetensors_file.pack(changed(data_offsets=[0]), data), "two offsets"),
    (safetensors_file.pack(changed(data_offsets=[0, 60, 60]), data), "two offsets"),
    (safetensors_file.pack(changed(extra=1), data), "unexpected key 'extra'"),
    (safetensors_file.pack({**header, "b": {"dtype": "F32", "shape": [3, 5]}}, data), "'data_offsets' is missing"),
    (safetensors_file.pack({**header, "b": 1}, data), "expected '{'"),
    (safetensors_file.pack({**header, "overlap": header["b"]}, data), "expected 60"),
    (safetensors_file.pack("[]", b""), "expected '{'"),
    (safetensors_file.pack("{", b""), "expected a string"),
    (safetensors_file.pack('{"a":', b""), "expected '{'"),
    (safetensors_file.pack("{} {}", b""), "expected the end of the text"),
    (safetensors_file.pack('{"__metadata__": ' + "[" * 100000, b""), "nesting of at most 64"),
    (safetensors_file.pack('{"__metadata__": {"a": nul}}', b""), "expected a value"),
    (safetensors_file.pack('{"__metadata__": [01]}', b""), "expected"),
    (safetensors_file.pack(b'{"\xff": {}}', b""), "expected UTF-8"),
    (safetensors_file.pack(b'{"\xc0\x80": {}}', b""), "expected UTF-8"),
    (safetensors_file.pack(b'{"\xed\xa0\x80": {}}', b""), "expected UTF-8"),
    (safetensors_file.pack('{"\\ud800": {}}', b""), "the second half of a surrogate pair"),
    (safetensors_file.pack('{"\\u0000": {}}', b""), "a string without NUL"),
    (safetensors_file.pack('{"a\nb": {}}', b""), "without control characters"),
    (safetensors_file.pack('{"a\\x": {}}', b""), "an escape"),
    (safetensors_file.pack(json.dumps(header)[:-1] + ', "b": ' + json.dumps(header["empty"]) + "}", data), "'b' stands twice"),
]:
    expect_error(read(content), message, content[:60])

# Damage anywhere in the header, and every truncation, is an error or a result, never a crash.
good = safetensors_file.pack(header, data)
for position in range(0, len(good) - len(data), 2):
    damaged = bytearray(good)
    damaged[position] = random.integers(256)
    read(bytes(damaged))
for length in range(0, len(good), 11):
    expect(read(good[:length]).returncode == 1, f"first {length} bytes")

# Sharded checkpoints.
first, second = os.path.join(folder, "m-1.safetensors"), os.path.join(folder, "m-2.safetensors")
index = os.path.join(folder, "m.safetensors.index.json")
safetensors_file.write(first, {"x": np.ones((2, 3), "f4"), "x2": np.ones(1, "f4")})
safetensors_file.write(second, {"y": np.ones(4, "f2")})


def shards(weight_map, key="y", **rest):
    text = weight_map if isinstance(weight_map, str) else json.dumps({"metadata": {"total_size": 36}, "weight_map": weight_map})
    with open(index, "w") as file:
        file.write(text)
    return run(reader, "weights", key, index)


names = {"x": "m-1.safetensors", "x2": "m-1.safetensors", "y": "m-2.safetensors"}
done = shards(names)
expect(done.stdout == f"3 tensors\n{second} F16 [4]\n", f"shards: {done.stdout!r} {done.stderr!r}")
expect_error(shards({**names, "z": "m-2.safetensors"}), "no tensor 'z', though")
expect_error(shards({**names, "z": "m-3.safetensors"}), "cannot be opened")
expect_error(shards({**names, "z": "../secret"}), "expected a file beside the index, found '../secret'")
expect_error(shards({**names, "z": "/etc/passwd"}), "expected a file beside the index")
expect_error(shards({**names, "z": 1}), "expected a string")
expect_error(shards("{}"), "'weight_map' is missing")
expect_error(shards('{"weight_map": {"x": "m-1.safetensors", "x": "m-2.safetensors"}}'), "'x' stands twice")
expect_error(shards('{"weight_map": {"x": "m-1.safetensors"'), "',' or '}'")
expect_error(run(reader, "weights", "x", first, first.replace("m-1", "./m-1")), "tensor 'x' is in both")
done = run(reader, "weights", "y", first, second)
expect(done.stdout == f"3 tensors\n{second} F16 [4]\n", "two files")
# A checkpoint's folder: its one file or, without that, its index; pickled weights are named.
bag = os.path.join(folder, "checkpoint")
os.mkdir(bag)
bagged = lambda name: os.path.join(bag, name)
expect_error(run(reader, "weights", "y", bag), f"{bag}: expected model.safetensors or model.safetensors.index.json in the folder")
open(bagged("pytorch_model.bin.index.json"), "w").close()
expect_error(run(reader, "weights", "y", bag + "/"), f"{bag}/pytorch_model.bin.index.json: pickled weights are not read: expected model.safetensors beside it")
with open(bagged("model.safetensors.index.json"), "w") as file:
    json.dump({"weight_map": {"y": "part.safetensors"}}, file)
safetensors_file.write(bagged("part.safetensors"), {"y": np.ones(5, "f2")})
expect(run(reader, "weights", "y", bag).stdout == f"1 tensors\n{bagged('part.safetensors')} F16 [5]\n", "a folder with an index")
expect_error(run(reader, "weights", "y", bag, second), "tensor 'y' is in both")
safetensors_file.write(bagged("model.safetensors"), {"y": np.ones(6, "f4")})
expect(run(reader, "weights", "y", bag).stdout == f"1 tensors\n{bagged('model.safetensors')} F32 [6]\n", "a folder with one file")
expect_error(run(reader, "weights", "y", bagged("model.safetensors") + "/"), "")
os.remove(bagged("model.safetensors"))
os.mkdir(bagged("model.safetensors"))
expect_error(run(reader, "weights", "y", bag), "expected a file, found a folder")
expect_error(run(reader, "weights", "y", "/dev/null"), "expected a file or a pipe, found a device")
finish()
