# RUN: %python %s %heed_bin %heed_src %cc %t
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
# REQUIRES: opencl
"""A program for a processor and for OpenCL: causal attention on PoCL, against float64 NumPy: sizes of 0, 1 and odd ones, NaN in keys
that are masked and in one that is not, several handles. Without a library, or without a device of type GPU, it runs on the processor
and says so; each function of OpenCL that fails ends in a status with words, and the handle can be closed."""
import os
import pathlib
import shutil
import subprocess
import sys
import threading

import numpy as np

from capi import Library, buffers
from device_attention import call, check, check_all, draw, oracle
from runs import expect, expect_error, finish, run

heedc, source, cc = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2]), sys.argv[3]
folder = pathlib.Path(sys.argv[4])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
os.environ.pop("HEED_TARGET", None)
model = source / "models/core/causal-attention.heed"


def compiled(name, *options):
    done = run(heedc, model, "-o", folder / name, *options)
    expect(done.returncode == 0, f"{options}: {done.stderr}")
    return folder / name


program = compiled("program", "--target=x86-64,opencl")
ON = {"HEED_TARGET": "opencl"}
check_all(program, **ON)
arrays = draw(1, 2, 2, 40, 40, 16, 16)

# Which device it takes, and why not another.
text = call(program, arrays, "--profile", **ON).stderr
expect("target opencl: OpenCL device '" in text, f"--profile: {text}")
without = folder / "without"
without.mkdir()
for name in ("libOpenCL.so", "libOpenCL.so.1"):
    (without / name).write_text("none")
for what, env in (("no library, libOpenCL.so.1", {"LD_LIBRARY_PATH": str(without)}),
                  ("no device", {"OCL_ICD_VENDORS": str(without), "OPENCL_VENDOR_PATH": str(without)})):
    words = "no OpenCL library" if "LD_LIBRARY_PATH" in env else "OpenCL finds no device"
    check(program, arrays, what, **env)
    text = call(program, arrays, "--profile", **env).stderr
    expect(f"target x86-64: {words}" in text, f"{what}: {text}")
    expect_error(call(program, arrays, **ON, **env), f"model 'attention' was compiled for a device: {words}", what)
expect_error(call(program, arrays, HEED_DEVICE="7", **ON), "OpenCL finds no device of number 7", "a number that no device has")
expect(call(program, arrays, HEED_DEVICE="0", **ON).returncode == 0, "the first device by its number")
alone = compiled("alone", "--target=opencl")
expect(call(alone, arrays, **ON).returncode == 0, "opencl alone")

# As a library, shared and static: two handles on their own threads, one more on the weights of the first.
for kind, name in (("shared", "libmodel.so"), ("lib", "libmodel.a")):
    file = compiled(name, "--target=x86-64,opencl", f"--emit={kind}")
    if kind == "lib":
        subprocess.run([*cc.split(), "-shared", "-o", folder / "libstatic.so", "-Wl,--whole-archive", file, "-Wl,--no-whole-archive",
                        "-lm", "-lpthread"], check=True)
        file = folder / "libstatic.so"
    handles = [Library(file, "attention", target=b"opencl") for _ in range(2)]
    expect([one.library.heed_target(one.handle) for one in handles] == [b"opencl"] * 2, f"{kind}: {handles[0].error()}")
    inputs = [draw(1, 2, 2, 70, 70, 24, 24) for _ in handles]
    results = [[np.full((1, 2, 70, 24), np.nan, np.float32) for _ in range(5)] for _ in handles]

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

# Every function of OpenCL fails once, in the first or in a later call.
real = subprocess.run(["sh", "-c", "ldconfig -p | sed -n 's/.*libOpenCL.so.1 .*=> //p'"], capture_output=True, text=True).stdout.split()[0]
stub = folder / "stub"
stub.mkdir()
done = run(*cc.split(), "-shared", "-fPIC", "-O1", "-o", stub / "libOpenCL.so.1", source / "test/e2e/Inputs/opencl-stub.c", "-ldl")
expect(done.returncode == 0, done.stderr)
with_stub = {"LD_LIBRARY_PATH": str(stub), "REAL": os.path.realpath(real), "FAIL": "", "AT": "0", **ON}
KEPT = "things are not given back"


def expect_closed(done, what):
    expect(KEPT not in done.stderr, f"{what}: {done.stderr}")


done = call(program, arrays, **with_stub)
expect(done.returncode == 0, "the stub alone")
expect_closed(done, "the stub alone")
for name, calls, words in (
        ("clGetPlatformIDs", (1,), "OpenCL finds no device"), ("clCreateContext", (1,), "gives no context and queue (-5)"),
        ("clCreateCommandQueue", (1,), "gives no context and queue (-5)"), ("clGetDeviceInfo", (2,), "has no shared virtual memory"),
        ("clCreateProgramWithSource", (1,), "clCreateProgramWithSource failed (-5)"), ("clBuildProgram", (1,), "clBuildProgram failed (-5)"),
        ("clCreateKernel", (1, 5), "clCreateKernel failed (-5)"), ("clSetKernelArg", (1, 30), "clSetKernelArg failed (-5)"),
        ("clSetKernelArgSVMPointer", (1, 6), "clSetKernelArgSVMPointer failed (-5)"),
        ("clEnqueueNDRangeKernel", (1, 2, 5), "clEnqueueNDRangeKernel failed (-5)"),
        # Three inputs, and the result.
        ("clEnqueueSVMMemcpy", (1, 3, 4), "clEnqueueSVMMemcpy failed (-5)"), ("clFinish", (1,), "clFinish failed (-5)")):
    for at in calls:
        done = call(program, arrays, **{**with_stub, "FAIL": name, "AT": str(at)})
        expect_error(done, words, f"{name}, call {at}")
        expect_closed(done, f"{name}, call {at}")
        expect(not (folder / "o.npy").exists(), f"{name}: an error wrote a result")
# A device without f64, which is asked for when a kernel there computes in it, and then alone: not of tables.
for name, body, refused in (("doubles", "y[n] = x[n] % 6.25", True), ("tables", "y[n] = x[n] * cos(n * 10000 ^ (-n / N))", False)):
    (folder / f"{name}.heed").write_text(f"model {name}(x: f32[N]) {{ return {body} }}")
    np.save(folder / "x.npy", x := np.linspace(0, 9, 40, dtype=np.float32))
    n = np.arange(40)
    want = x % 6.25 if refused else x * np.cos(n * 10000.0 ** (-n / 40))
    done = run(heedc, folder / f"{name}.heed", "--target=x86-64,opencl", "-o", folder / name)
    expect(done.returncode == 0, done.stderr)
    for env in (ON, {}):
        # Its name, its memory, its f64; without HEED_TARGET no device is of type GPU before that.
        done = run(folder / name, "--x", folder / "x.npy", "--output", folder / "y.npy", "--profile", env={**os.environ, **with_stub, "FAIL": "clGetDeviceInfo", "AT": "3", **env} if env else os.environ)
        words = "has no f64 (cl_khr_fp64), in which kernels of this model compute"
        if env and refused:
            expect_error(done, f"model '{name}' was compiled for a device: OpenCL device '", words)
            continue
        expect(done.returncode == 0 and np.abs(np.load(folder / "y.npy") - want).max() <= 1e-4, f"{name}: {done.stderr}")
        expect(("target opencl" in done.stderr) == bool(env), f"{name}: {done.stderr}")

# Memory: once more when all that nobody uses is given back; then how much is missing.
for at, bytes_of in ((1, 5120), (3, 5120), (5, None)):
    for until in (at, at + 1):
        done = call(program, arrays, **{**with_stub, "FAIL": "clSVMAlloc", "AT": str(at), "UNTIL": str(until)})
        expect_closed(done, f"clSVMAlloc {at} to {until}")
        if until == at:
            expect(done.returncode == 0, f"clSVMAlloc {at}, once: {done.stderr}")
        else:
            expect_error(done, f"the device has no memory for {bytes_of or ''}", f"clSVMAlloc {at}, twice")
expect(call(program, arrays, **{**with_stub, "FAIL": "clGetDeviceInfo", "AT": "1"}).returncode == 0, "a device without a name")
# The handle goes on working after a failed call.
again = """
import sys
import numpy as np
from capi import Library, buffers
from device_attention import call, check, check_all, draw, oracle
model = Library(sys.argv[1], "attention", target=b"opencl")
given = [np.load(f"{sys.argv[2]}/{name}.npy") for name in "qkv"]
outs = [np.zeros(given[0].shape, np.float32) for _ in range(2)]
print([model.run(buffers(*given), buffers(out)) for out in outs], model.error())
model.close()
np.save(sys.argv[2] + "/o.npy", outs[1])
"""
for name, status in (("clSVMAlloc", 5), ("clBuildProgram", 15), ("clCreateKernel", 15), ("clEnqueueNDRangeKernel", 15),
                     ("clEnqueueSVMMemcpy", 15), ("clFinish", 15)):
    done = run(sys.executable, "-c", again, folder / "libmodel.so", folder,
               env={**os.environ, **with_stub, "FAIL": name, "AT": "1", "UNTIL": "2" if status == 5 else "1"})
    expect(done.stdout.startswith(f"[{status}, 0]") and np.abs(np.load(folder / "o.npy") - oracle(**arrays)).max() <= 1e-5,
           f"{name}: a second call: {done.stdout} {done.stderr}")
    expect_closed(done, f"{name}: a second call")
finish()
