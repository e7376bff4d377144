# RUN: %python %s %heed_bin %heed_src %cc %t
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
"""A program for a processor and for CUDA, whose driver is a stub here that runs PTX: causal attention against float64 NumPy, sizes of 0, 1 and odd ones,
NaN and infinities; several handles. Without a driver or a device that will do it runs on the processor and says so."""
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np

import cuda_stub
from capi import Library, buffers
from device_attention import call, check, check_all, draw, oracle, random
from runs import expect, expect_error, finish, run

heedc, source, cc = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2]), sys.argv[3]
folder = pathlib.Path(sys.argv[4])
cuda_stub.start(cc, source, folder)
os.environ.pop("HEED_TARGET", None)
model = source / "models/core/causal-attention.heed"


def compiled(name, *options, of=model):
    done = run(heedc, of, "-o", folder / name, *options)
    expect(done.returncode == 0, f"{options}: {done.stderr}")
    return folder / name


both = compiled("both", "--target=x86-64,cuda")
check_all(both)
arrays = draw(1, 2, 2, 40, 40, 16, 16)

# Which device it takes, and why not another.
done = call(both, arrays, "--profile")
expect("target cuda: CUDA device 'stub 0'\n1 calls, copies to the device 3 (" in done.stderr, f"--profile: {done.stderr}")
# The stub's events are an hour apart: kernels are timed by them. Limits are the processor's.
expect(" 3600000.000 " in done.stdout and "limits" not in done.stdout, f"--profile: {done.stdout}")
expect("target cuda: CUDA device 'stub 1'" in call(both, arrays, "--profile", DEVICES="2").stderr, "the first device is too old")
expect("target cuda: CUDA device 'stub 2'" in call(both, arrays, "--profile", DEVICES="3", HEED_DEVICE="1").stderr, "the second that will do")
for number in ("2", "-1", "x"):
    expect_error(call(both, arrays, DEVICES="3", HEED_DEVICE=number, HEED_TARGET="cuda"), "CUDA's driver finds 2 devices for kernels, none of number", number)
without = folder / "without"
without.mkdir()
(without / "libcuda.so.1").write_text("none")
(without / "lacks.c").write_text("int cuInit(unsigned flags) { return (int)flags; }")
lacks = folder / "lacks"
lacks.mkdir()
run(*cc.split(), "-shared", "-fPIC", "-o", lacks / "libcuda.so.1", without / "lacks.c")
on_host = None
for words, env in (("no CUDA driver, libcuda.so.1, can be loaded", {"LD_LIBRARY_PATH": str(without)}), ("CUDA's driver has no cu", {"LD_LIBRARY_PATH": str(lacks)}),
                   ("CUDA's driver finds no device (100, CUDA_ERROR_NO_DEVICE)", {"DEVICES": "0"}),
                   ("CUDA device 'stub 0' has compute capability 7.5, kernels need 8.0", {"OLD": "1"}),
                   ("cuDevicePrimaryCtxRetain failed (999, CUDA_ERROR_UNKNOWN)", {"FAIL": "cuDevicePrimaryCtxRetain", "AT": "1"})):
    on_host = check(both, arrays, words, **env)
    text = call(both, arrays, "--profile", **env).stderr
    expect("target x86-64: " in text and words in text, f"{words}: {text}")
    expect_error(call(both, arrays, HEED_TARGET="cuda", **env), "model 'attention' was compiled for a device: ", words)
    expect_error(call(both, arrays, HEED_TARGET="cuda", **env), words, words)
# The processor's numbers are those of a program for it alone.
plain = compiled("plain", "--target=x86-64")
expect(np.array_equal(check(plain, arrays, "the processor alone"), on_host), "the processor's numbers")
expect(not any(word in plain.read_bytes() for word in (b"libcuda", b"libOpenCL")), "a program for the processor knows no device")
alone = compiled("alone", "--target=cuda")
check(alone, arrays, "cuda alone")
# CUDA before OpenCL, where there are both.
all_ = compiled("all", "--target=opencl,x86-64,cuda")
expect("target cuda: " in call(all_, arrays, "--profile").stderr, "CUDA is taken first")
check(all_, arrays, "of three the processor", LD_LIBRARY_PATH=str(without), HEED_TARGET="x86-64")

# As a library, shared and static: two handles on their own threads.
for kind, name in (("shared", "libmodel.so"), ("lib", "libmodel.a")):
    file = compiled(name, "--target=x86-64,cuda", f"--emit={kind}")
    if kind == "lib":
        subprocess.run([*cc.split(), "-shared", "-o", folder / "libstatic.so", "-Wl,--whole-archive", file, "-Wl,--no-whole-archive",
                        "-lm", "-lpthread"], check=True)
        file = folder / "libstatic.so"
    handles = [Library(file, "attention", target=b"cuda") for _ in range(2)]
    expect([one.library.heed_target(one.handle) for one in handles] == [b"cuda"] * 2, f"{kind}: {handles[0].error()}")
    inputs = [draw(1, 2, 2, 70, 70, 24, 24) for _ in handles]
    results = [[np.full((1, 2, 70, 24), np.nan, np.float32) for _ in range(3)] for _ in handles]

    def work(number):
        for out in results[number]:
            expect(handles[number].run(buffers(*inputs[number].values()), buffers(out)) == 0, handles[number].error())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for given, outs in zip(inputs, results):
        for out in outs:
            expect(np.abs(out - oracle(**given)).max() <= 1e-5, f"{kind}: two handles at once")
    for one in handles:
        one.close()

os.environ["DEVICES"] = "4"
numbered = Library(folder / "libmodel.so", "attention", target=b"cuda", device=3)
expect("finds 3 devices for kernels, none of number 3" in numbered.error(), f"options.device: {numbered.error()}")
numbered.close()
numbered = Library(folder / "libmodel.so", "attention", target=b"cuda", device=2)
expect(numbered.status == 0, f"options.device: {numbered.error()}")
numbered.close()
del os.environ["DEVICES"]

# Too little memory: once more when all that nobody uses is given back; then how much is missing.
for at, bytes_of in ((1, 5120), (3, 5120)):
    for until in (at, at + 1):
        done = call(both, arrays, FAIL="cuMemAlloc", AT=str(at), UNTIL=str(until), STATUS="2")
        if until == at:
            expect(done.returncode == 0, f"cuMemAlloc {at}, once: {done.stderr}")
        else:
            expect_error(done, f"the device has no memory for {bytes_of} bytes beside the {(at - 1) * 5120} that it holds", f"cuMemAlloc {at}, twice")
# The reason that the driver gives.
expect_error(call(both, arrays, FAIL="cuModuleLoadDataEx", AT="1", STATUS="218"),
             "cuModuleLoadDataEx failed (218, CUDA_ERROR_INVALID_PTX): ptxas as the stub plays it: asked to fail", "cuModuleLoadDataEx")
done = call(both, arrays, FAIL="cuLaunchKernel", AT="1", STATUS="700", LOST="1")
expect_error(done, "cuLaunchKernel failed (700, CUDA_ERROR_ILLEGAL_ADDRESS)", "a device that is lost")
# Blocks that share more memory than they have unasked: a schedule whose steps were edited from 16 to 128 products.
compiled("tall.mlir", "--target=cuda", "--emit=halide", of=source / "test/check/Inputs/products/tall.heed")
text = (folder / "tall.mlir").read_text()
expect(text.count("constant 16 : i32") == 3 and text.count("constant 15 : i32") == 1, "the schedule of tall.heed")
(folder / "tall.mlir").write_text(text.replace("constant 16 : i32", "constant 128 : i32").replace("constant 15 : i32", "constant 127 : i32"))
tall = compiled("tall", "--target=cuda", of=folder / "tall.mlir")
a, c, s = (random.uniform(-1, 1, shape).astype(np.float32) for shape in ((3, 3, 300), (1300, 300), (3, 3)))
done = call(tall, {"a": a, "c": c, "s": s})
want = np.einsum("muk,ok->muo", a.astype(np.float64), c) + s[..., None]
expect(done.returncode == 0 and np.abs(np.load(folder / "o.npy") - want).max() <= 1e-5 * np.abs(want).max(), f"64 KB: {done.stderr}")
for words, env in (("cuFuncSetAttribute failed (1, CUDA_ERROR_INVALID_VALUE)", {"FAIL": "cuFuncSetAttribute", "AT": "1", "STATUS": "1"}),
                   ("bytes of shared memory in a block, CUDA at most 50000 here", {"SHARED": "50000"})):
    expect_error(call(tall, {"a": a, "c": c, "s": s}, **env), words, words)

# An array without elements is read, at places within its other axes, where nothing is made of it.
(folder / "both.heed").write_text("model both(a: f32[M, D], b: f32[N, D]) { return y[n: M + N, d] = concat(n)(a[n,d], b[n,d]) }")
joined = compiled("joined", "--target=cuda", of=folder / "both.heed")
a, b = random.uniform(-1, 1, (2, 132)).astype(np.float32), np.zeros((0, 132), np.float32)
for given in ({"a": a, "b": b}, {"a": b, "b": a}):
    done = call(joined, given)
    expect(done.returncode == 0 and np.array_equal(np.load(folder / "o.npy"), a), f"an array without elements: {done.stderr}")

# More blocks than a grid has: many of the outer dim are no error.
(folder / "grid.heed").write_text("model grid(x: f32[A, B, C]) { return y[a, b, c] = x[a, b, c] * 2 }")
grid = compiled("grid", "--target=cuda", of=folder / "grid.heed")
x = random.uniform(-1, 1, (65537, 1, 1)).astype(np.float32)
np.save(folder / "x.npy", x)
done = run(grid, "--x", folder / "x.npy", "--output", folder / "o.npy")
expect(done.returncode == 0 and np.array_equal(np.load(folder / "o.npy"), 2 * x), f"a long grid: {done.stderr}")
np.save(folder / "x.npy", x.reshape(1, 65537, 1)[:, [0] * (4 * 65535 + 1)])
expect_error(run(grid, "--x", folder / "x.npy", "--output", folder / "o.npy"), "has 65536 blocks in z, CUDA at most 65535 here", "a wide grid")
finish()
