"""A driver of CUDA's that runs kernels on the processor, where no GPU is."""
import pathlib
import subprocess
import sys

SOURCES = ("cuda-stub.c", "cuda-stub-memory.c", "ptx-load.c", "ptx-opcodes.c", "ptx-run.c", "ptx-values.c")


def build(cc, source, folder, *options):
    """Makes folder/libcuda.so.1; what finds it instead of a real one is LD_LIBRARY_PATH=folder. `cc` may be a command of several words."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs = [source / "test/e2e/Inputs" / name for name in SOURCES]
    subprocess.run([*cc.split(), "-std=gnu11", "-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC", "-Wl,-Bsymbolic", *options, "-o", folder / "libcuda.so.1", *inputs, "-lm"], check=True)


if __name__ == "__main__":
    build(sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
