# RUN: %python %s %heed_bin %heed_src %heed_build %cc %t
# The runtime's part for devices is built with sanitizers here, whatever the rest was built with.
# UNSUPPORTED: asan
"""Every function of CUDA's driver fails at each of its calls, in a model with weights that opening computes with and with states: a status with words each
time, the same numbers when the call is made again, nothing kept when all is closed, and nothing that AddressSanitizer finds. A call that is cancelled between
kernels; a second handle on the same weights. The driver is a stub."""
import importlib.util
import pathlib
import shutil
import sys

import cuda_stub
from runs import expect, finish, run

heedc, source, build, cc = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4]
folder = pathlib.Path(sys.argv[5])
shutil.rmtree(folder, ignore_errors=True)
# Not of functions' types: those of the driver have CUDA's own.
sanitize = ("-g", "-fsanitize=address,alignment,bounds,null,shift,signed-integer-overflow,integer-divide-by-zero", "-fno-sanitize-recover=all")
cuda_stub.build(cc, source, folder)
done = run(heedc, source / "test/e2e/Inputs/failing.heed", "--target=cuda", "--emit=obj", "-o", folder / "failing.o")
expect(done.returncode == 0, done.stderr)
device = [source / "runtime" / f"{name}.c"
          for name in ("Cuda", "CudaCopies", "CudaKernels", "Device", "DeviceArguments", "DeviceCalls", "DeviceMemory", "DevicePrograms", "DeviceStates", "Mirrors")]
includes = ("-I", source, "-isystem", pathlib.Path(importlib.util.find_spec("halide").origin).parent / "include")
done = run(*cc.split(), "-std=c11", "-D_GNU_SOURCE", "-O1", *sanitize, *includes, source / "test/e2e/Inputs/device_failures.c", *device, folder / "failing.o",
           build / "lib/halide_runtime-x86-64.o", build / "lib/libheed_runtime.a", "-lm", "-lpthread", "-ldl", "-o", folder / "failures")
expect(done.returncode == 0, done.stderr)
# The last one makes a device that is lost, too.
FUNCTIONS = ("cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent", "cuStreamCreate", "cuStreamSynchronize", "cuMemAlloc",
             "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync", "cuEventCreate", "cuEventRecord", "cuEventElapsedTime", "cuModuleLoadDataEx",
             "cuModuleGetFunction", "cuLaunchKernel")
done = run(folder / "failures", *FUNCTIONS, env={"LD_LIBRARY_PATH": str(folder), "STATUS": "700", "ASAN_OPTIONS": "detect_leaks=1"})
print(done.stdout, done.stderr)
expect(done.returncode == 0 and done.stdout.endswith("faults: 0\n") and not done.stderr, "failures")
finish()
