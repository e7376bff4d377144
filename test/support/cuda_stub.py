"""A driver of CUDA's that runs kernels on the processor, where no GPU is."""
import os
import pathlib
import shutil
import subprocess
import sys

from runs import expect, finish, run

SOURCES = ("cuda-stub.c", "cuda-stub-memory.c", "ptx-load.c", "ptx-opcodes.c", "ptx-run.c", "ptx-values.c")


def build(cc, source, folder, *options):
    """Makes folder/libcuda.so.1; what finds it instead of a real one is LD_LIBRARY_PATH=folder. `cc` may be a command of several words."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs = [source / "test/e2e/Inputs" / name for name in SOURCES]
    subprocess.run([*cc.split(), "-std=gnu11", "-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC", "-Wl,-Bsymbolic", *options, "-o", folder / "libcuda.so.1", *inputs, "-lm"], check=True)


def start(cc, source, folder):
    """Goes on in a process that finds this driver; the one that calls it first builds it in folder/stub, and ends with what that said."""
    if "CUDA_STUB" in os.environ:
        return
    shutil.rmtree(folder, ignore_errors=True)
    build(cc, source, folder / "stub")
    done = run(sys.executable, *sys.argv, env={**os.environ, "LD_LIBRARY_PATH": str(folder / "stub"), "CUDA_STUB": "1"})
    print(done.stdout, done.stderr)
    expect(done.returncode == 0 and "cuda-stub" not in done.stderr, "the test itself, with the stub")
    finish()


if __name__ == "__main__":
    build(sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
