"""`main` of compiled programs over a hand-written model: options, inputs, results, and nothing left behind on failure.

RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin/../test/runtime/bin/fake-model %t
RUN: %heed_bin/../test/runtime/bin/abi-test %t/w.safetensors %t/bad/*
RUN: %heed_bin/../test/runtime/bin/run-test %t/w.safetensors
RUN: %heed_bin/../test/runtime/bin/host-test %t/w.safetensors
RUN: cp %t/w.safetensors %t/spoilt.safetensors && %heed_bin/../test/runtime/bin/weights-test %t/w.safetensors %t/spoilt.safetensors
RUN: mkdir %t/packed && %heed_bin/../test/runtime/bin/packed-test %t/w.safetensors %t/packed/w && ls %t/packed | count 1
"""
import json
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np

import safetensors_file
from runs import expect, expect_error, finish, run

program, folder = sys.argv[1:]
sanitized = b"__asan_init" in open(program, "rb").read()
os.chdir(folder)
table = 10 * np.arange(5, dtype="f4")[:, None] + np.arange(4, dtype="f4")
weights = {"table": table, "layer.1.bias": np.full(4, 60, "f4"), "layer.2.bias": np.full(4, 40, "f4")}
safetensors_file.write("w.safetensors", weights)
x = np.random.default_rng(3).standard_normal((9, 4)).astype("f4")
ids = np.arange(9) % 5
np.save("x.npy", x)
np.save("ids.npy", ids)  # i64, as NumPy makes it
np.savez("both.npz", x=x, ids=ids)
inputs = ["--weights", "w.safetensors", "--x", "x.npy", "--ids", "ids.npy"]


def expected(scale):
    return x * np.float32(scale) + table[ids] + np.float32(100)


def listing():
    return sorted(os.listdir("."))


def check(done, scale, path="y.npy"):
    expect(done.returncode == 0, f"{done.args}: {done.stderr}")
    if done.returncode == 0:
        expect(np.allclose(np.load(path), expected(scale), atol=1e-4), f"{done.args}: values")
        os.remove(path)


# Results, with all spellings of inputs.
check(run(program, *inputs, "--output", "y=y.npy"), 2)
check(run(program, *inputs, "--output=y=y.npy", "--scale", "0.5", "--threads", 2), 0.5)
check(run(program, "--weights=w.safetensors", "--x=both.npz:x", "--ids=both.npz:ids", "--output=y=y.npy", "--scale=-1e0"), -1)
check(run(program, *inputs[:2], "--input", "x=x.npy", "--input", "ids=ids.npy", "--output", "y=y.npy"), 2)
np.save("xf.npy", np.asfortranarray(x))
check(run(program, *inputs[:2], "--x", "xf.npy", "--ids", "ids.npy", "--output", "y=y.npy"), 2)
np.save("x64.npy", x.astype("f8"))
check(run(program, *inputs[:2], "--x", "x64.npy", "--ids", "ids.npy", "--output", "y=y.npy", "--convert"), 2)
done = run(program, *inputs, "--output", "y=y.npy", "--output", "count=c.npy")
check(done, 2)
count = np.load("c.npy")
expect(count.shape == () and count.dtype == np.int32 and count == 9, "count")
os.remove("c.npy")
# Weights of other names and types.
half = {"alt.table" if k == "table" else k: v.astype("f2") for k, v in weights.items()}
safetensors_file.write("half.safetensors", half)
check(run(program, "--weights", "half.safetensors", *inputs[2:], "--output", "y=y.npy"), 2)
# Links are followed; a file that is there is replaced.
open("target.npy", "w").write("old")
os.symlink("target.npy", "link.npy")
check(run(program, *inputs, "--output", "y=link.npy"), 2, "target.npy")
check(run(program, *inputs, "--output", "y=link.npy"), 2, "target.npy")
expect(os.path.islink("link.npy"), "a link is replaced")
os.remove("link.npy")
# Standard streams that are closed: no file takes their place.
quoted = " ".join(f"'{a}'" for a in [program, *inputs])
check(run("sh", "-c", f"{quoted} --output y=y.npy <&- >&- 2>&-"), 2)

done = run(program, *inputs)
expect("y: f32[9, 4] " in done.stdout and "count: i32 9" in done.stdout, f"summary: {done.stdout!r}")
done = run(program, *inputs, "--bench", "7", "--profile", "--threads", "2")
expect("7 runs, 2 threads: best" in done.stdout and "k_rows" in done.stdout, f"bench: {done.stdout!r}")
# Inputs by shape; times as JSON.
drawn = ["--weights", "w.safetensors", "--x", "9x4", "--ids", "9:5"]
done = run(program, *drawn, "--bench", "20", "--json")
times = json.loads(done.stdout)
expect(times["inputs"] == {"x": [9, 4], "ids": [9]} and times["runs"] == 20 and times["warm_up"] == 1, f"--json: {times}")
ms = times["ms"]
expect(0 < ms["best"] <= ms["median"] <= ms["p90"] <= ms["p99"] <= ms["worst"] and ms["best"] <= ms["mean"] <= ms["worst"], f"--json: {ms}")
first = run(program, *drawn, "--bench", "1", "--output", "y=y.npy")
expect(first.returncode == 0 and "99 % within" in first.stdout, f"by shape: {first.stderr}")
y = np.load("y.npy")
expect(y.shape == (9, 4) and len(np.unique(y)) > 30, "drawn elements")
run(program, *drawn, "--bench", "1", "--output", "y=y.npy")
expect(np.array_equal(y, np.load("y.npy")), "the same elements in every run")
os.remove("y.npy")
done = run(program, "--help")
for text in ["--x FILE", "f32[N, 4]", "--scale NUMBER", "f32 (default 2)", "--weights FILE", "y ", "count"]:
    expect(text in done.stdout, f"--help: {text}")
expect(run(program, "--version").stdout.startswith("fake (heed "), "--version")

# Errors: exit code 1, one line, nothing written.
os.mkdir("bad")
output = ["--output", "y=y.npy"]
np.save("bad-ids.npy", np.full(9, 5))
np.save("wide.npy", np.zeros((9, 5), "f4"))
np.save("short.npy", ids[:8])
os.symlink("bad", "same")
os.symlink("no/such.npy", "astray.npy")
os.symlink("/proc/self/fd/1", "stdout.npy")  # as /dev/stdout is one
before = listing()
for arguments, message in [
    ([], "input 'x' is missing (--x FILE.npy)"),
    (inputs + ["--what"], "unknown option '--what'"),
    (inputs + ["x"], "expected an option, found 'x'"),
    (inputs + ["--x", "x.npy"], "input 'x' is given twice"),
    (inputs + ["--scale", "two"], "expected a number of type f32, found 'two'"),
    (inputs + ["--scale"], "option '--scale' expects a value"),
    (inputs + ["--threads", "0"], "expected a number from 1 to 4096, found '0'"),
    (inputs + ["--output", "y.npy"], "expected NAME=FILE with one of the 2 results' names"),
    (inputs + output + output, "output 'y' is given twice"),
    (inputs + ["--output", "y=no/such/y.npy"], "no/such/y.npy: cannot be written"),
    (inputs + ["--output", "y=."], "expected a file's name, found a folder"),
    (inputs + ["--output", "y=astray.npy"], "astray.npy: cannot be written: No such file or directory"),
    (inputs + ["--output", "y=a.npy", "--output", "count=a.npy"], "two results for one file"),
    (inputs + ["--output", "y=a.npy", "--output", "count=./a.npy"], "./a.npy: two results for one file"),
    (inputs + ["--output", "y=bad/a.npy", "--output", "count=same/a.npy"], "same/a.npy: two results for one file"),
    (inputs + ["--output", "y=bad/../x.npy", "--output", "count=x.npy"], "x.npy: two results for one file"),
    (inputs + ["--output", "y=x.npy/y.npy"], "x.npy/y.npy: cannot be written: Not a directory"),
    (inputs[:2] + inputs[4:], "input 'x' is missing (--x FILE.npy)"),
    (inputs[:4], "input 'ids' is missing (--ids FILE.npy)"),
    (inputs + output + ["--entry", "other"], "there is no entry 'other'"),
    (inputs[2:] + output, "model 'fake' has 2 parameters: expected a weights file"),
    (["--weights", "x.npy"] + inputs[2:] + output, "x.npy: not a .safetensors file"),
    (inputs[:4] + ["--ids", "bad-ids.npy"] + output, "ids[0] = 5 is out of range for table (axis 0)"),
    (inputs[:2] + ["--x", "/dev/zero", "--ids", "ids.npy"] + output, "/dev/zero: expected a file or a pipe, found a device"),
    (inputs[:2] + ["--x", "9x4", "--ids", "ids.npy"] + output, "9x4: cannot be opened: No such file"),
    (inputs[:2] + ["--x", "9x4x1", "--ids", "9:5", "--bench", "1"] + output, "input 'x' (9x4x1): expected 2 axes, found 3"),
    (inputs[:2] + ["--x", "9x4", "--ids", "9:99", "--bench", "1"] + output, "is out of range for table (axis 0)"),
    (inputs[:2] + ["--x", "4000000000x4000000000", "--ids", "9:5", "--bench", "1"] + output, "no memory for an array of this shape"),
    (inputs + output + ["--json"], "option '--json' goes with --bench"),
    (inputs[:4] + ["--ids", "short.npy"] + output, "extent of 'ids' (axis 0) is 8, expected N = 9"),
    (inputs[:2] + ["--x", "wide.npy", "--ids", "ids.npy"] + output, "input 'x': expected extent 4 on axis 1, found shape [9, 5]"),
    (inputs[:2] + ["--x", "x64.npy", "--ids", "ids.npy"] + output, "expected element type f32, found f64 (--convert rounds it)"),
    (inputs[:2] + ["--x", "ids.npy", "--ids", "ids.npy"] + output, "expected 2 axes, found shape [9]"),
    (inputs + output + ["--scale", "13"], "kernel 'k_rows' failed (-77): the number 13"),
    (inputs + output + ["--scale", "15"], "no memory for an intermediate result of 4503599627370496 bytes"),
]:
    expect_error(run(program, *arguments), message, arguments)
    expect(listing() == before, f"{arguments}: left {set(listing()) - set(before)}")
for place, message in (("", "standard output cannot be written"), ("--output y=stdout.npy", "stdout.npy: ")):
    expect_error(run("sh", "-c", f"{quoted} {place} >&-"), message, "closed standard output")
expect(listing() == before and os.path.islink("stdout.npy"), "closed standard output")
for name, tensors, message in [
    ("missing", {k: v for k, v in weights.items() if k != "layer.2.bias"}, "no tensor 'layer.2.bias' among the 2"),
    ("neither", {k: v for k, v in weights.items() if k != "table"}, "no tensor 'table' (nor 'alt.table') among the 2"),
    ("shape", {**weights, "table": table[:, :3]}, "'table': expected shape [V, 4], found [5, 3]"),
    ("type", {**weights, "table": table.astype("i4")}, "'table': expected element type f32, found i32"),
]:
    safetensors_file.write(f"bad/{name}.safetensors", tensors)
    expect_error(run(program, "--weights", f"bad/{name}.safetensors", *inputs[2:]), message, name)
# Files that stop too early or say nothing, for this program and for abi-test.
whole = open("w.safetensors", "rb").read()
for size in (0, 5, 8, 40, len(whole) - 200, len(whole) - 1):
    with open(f"bad/cut-{size}.safetensors", "wb") as file:
        file.write(whole[:size])
    expect_error(run(program, "--weights", f"bad/cut-{size}.safetensors", *inputs[2:]),
                 "the file is empty" if not size else "safetensors", size)
with open("bad/shards.index.json", "w") as file:
    file.write('{"weight_map": {"table": "no-such.safetensors"}}')
expect_error(run(program, "--weights", "bad/shards.index.json", *inputs[2:]), "no-such.safetensors: cannot be opened", "shard")

# Packed weights as a file: written by one process, read by another; nothing is left of one that did not fit on the disk.
before = listing()
done = run(program, *inputs[:2], "--save-packed", "w.packed")
expect(done.returncode == 0 and not done.stdout and listing() == sorted(before + ["w.packed"]), f"--save-packed: {done.stderr}")
check(run(program, "--packed", "w.packed", *inputs[2:], *output), 2)
check(run(program, "--packed=w.packed", *inputs[2:], *output, "--scale", "0.5", "--threads", 2), 0.5)
done = run(program, "--packed", "w.packed", "--save-packed", "again.packed")
expect(done.returncode == 0 and open("again.packed", "rb").read() == open("w.packed", "rb").read(), "saved from a packed file")
os.remove("again.packed")
expect_error(run(program, "--packed", "w.packed", *inputs, *output), "option '--packed' does not go with --weights", "both")
expect_error(run(program, "--packed", "w.safetensors", *inputs[2:], *output), "it is not a file of packed weights", "no packed file")
os.truncate("w.packed", os.path.getsize("w.packed") - 1)
expect_error(run(program, "--packed", "w.packed", *inputs[2:], *output), "truncated", "a packed file without its end")
done = run(program, *inputs[:2], "--save-packed", "w.packed", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)),
           restore_signals=True)
expect_error(done, "w.packed: cannot be written: File too large", "file size limit, --save-packed")
expect(listing() == sorted(before + ["w.packed"]), "file size limit, --save-packed: something is left")
expect_error(run(program, *inputs[:2], "--save-packed", "/dev/full"), "/dev/full: cannot be written: No space left", "--save-packed /dev/full")
expect(not os.path.isfile("/dev/full"), "a device is replaced")
expect_error(run(program, *inputs[:2], "--save-packed", "bad"), "bad: expected a file's name, found a folder", "--save-packed of a folder")
os.symlink("w.packed", "link.packed")
done = run(program, *inputs[:2], "--save-packed", "link.packed")
expect(done.returncode == 0 and os.path.islink("link.packed"), f"--save-packed of a link: {done.stderr}")
check(run(program, "--packed", "w.packed", *inputs[2:], *output), 2)
os.remove("link.packed")
os.remove("w.packed")

# A full disk, or a limit on file sizes: an error, the old file still there, nothing else.
open("y.npy", "w").write("old")
before = listing()
done = run(program, *inputs, *output, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
           restore_signals=True)
expect_error(done, "y.npy: cannot be written: File too large", "file size limit")
expect(listing() == before and open("y.npy").read() == "old", "file size limit: the old file stays")
expect_error(run(program, *inputs, "--output", "y=/dev/full"), "/dev/full: cannot be written: No space left", "/dev/full")
os.remove("y.npy")

# Of two files the second cannot get its name after all: the first one is what it was.
with open("rename.c", "w") as source:
    source.write("""#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
int rename(const char *from, const char *to) {
  if (strstr(to, "c.npy"))
    return errno = EIO, -1;
  return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
}
""")
if not sanitized:  # a sanitizer wants to be the first library
    made = run(os.environ.get("CC", "cc"), "-shared", "-fPIC", "rename.c", "-o", "rename.so", "-ldl")
    expect(made.returncode == 0, made.stderr)
    for old in ("old", None):
        for name in ("y.npy", "c.npy"):
            if old:
                open(name, "w").write(old + name)
                os.chmod(name, 0o751)
        before = listing()
        done = run(program, *inputs, "--output", "y=y.npy", "--output", "count=c.npy",
                   env={**os.environ, "LD_PRELOAD": os.path.abspath("rename.so")})
        expect_error(done, "c.npy: cannot be written: Input/output error", "the second output")
        expect(listing() == before, f"the second output: left {set(listing()) ^ set(before)}")
        for name in ("y.npy", "c.npy"):
            if old:
                expect(open(name).read() == old + name and os.stat(name).st_mode & 0o777 == 0o751, f"{name} is lost")
                os.remove(name)

# Ctrl-C at any moment: either nothing or the whole file.
rows = 1 << 20
np.save("large.npy", np.zeros((rows, 4), "f4"))
np.save("large-ids.npy", np.zeros(rows, "i4"))
before = listing()
for k in range(12):
    process = subprocess.Popen([program, *inputs[:2], "--x", "large.npy", "--ids", "large-ids.npy", *output],
                               stderr=subprocess.DEVNULL)
    time.sleep(0.01 * k)
    process.send_signal(signal.SIGINT if k % 2 else signal.SIGTERM)
    process.wait()
    left = set(listing()) - set(before)
    expect(left <= {"y.npy"}, f"interrupted: left {left}")
    if left:
        expect(np.load("y.npy").shape == (rows, 4), "interrupted: a part of a file")
        os.remove("y.npy")
finish()
