# RUN: %python %s %heed_bin %heed_src %cc %t
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
"""Machine code beside a kernel's PTX (--cuda-arch): what fits the device is loaded, else, and where a driver refuses it, the PTX. ptxas is a script here that
wraps the PTX, which the stub of CUDA's driver takes for machine code; where there is a real one, its code is kept, and too new for the stub."""
import ctypes as C
import os
import pathlib
import shutil
import sys

import numpy as np

import cuda_stub
from capi import Library, buffers
from device_attention import draw, oracle
from runs import expect, expect_error, finish, run

heedc, source, cc = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2]), sys.argv[3]
folder = pathlib.Path(sys.argv[4])
cuda_stub.start(cc, source, folder)
model = source / "models/core/causal-attention.heed"
#: Heads of 16, too few keys to cut: tiles alone.
ONE_KERNEL = [option for dim in ("E=16", "F=16", "M=40") for option in ("--set", dim)]
SCRIPT = f"""#!{sys.executable}
import sys
arch, out, ptx = sys.argv[1].removeprefix("-arch="), sys.argv[3], open(sys.argv[4], "rb").read()
assert sys.argv[2] == "-o" and len(sys.argv) == 5 and ptx.startswith(b"//") and b".target" in ptx
REFUSAL
open(out, "wb").write(b"\\x7fELF" + arch.encode() + b"\\n" + ptx + b"\\0")
"""


def ptxas(name, refusal=""):
    """An environment in which ptxas is the script."""
    (folder / name).mkdir()
    script = folder / name / "ptxas"
    script.write_text(SCRIPT.replace("REFUSAL", refusal))
    script.chmod(0o755)
    return {**os.environ, "PATH": f"{script.parent}:{os.environ['PATH']}"}


def compiled(name, *options, env):
    done = run(heedc, model, "-o", folder / f"lib{name}.so", "--emit=shared", *ONE_KERNEL, *options, env=env)
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    return folder / f"lib{name}.so"


arrays = draw(1, 2, 2, 40, 40, 16, 16)
want = oracle(**arrays)
driver = C.CDLL("libcuda.so.1")
binaries, loads = (C.c_int.in_dll(driver, name) for name in ("cuda_stub_binaries", "calls_cuModuleLoadDataEx"))


def check(library, of_machine_code, modules, what):
    """Runs it, and counts what is loaded: of machine code, and how often the driver is asked."""
    before = binaries.value, loads.value
    opened, out = Library(library, "attention", target=b"cuda"), np.full(want.shape, np.nan, np.float32)
    expect(opened.run(buffers(*arrays.values()), buffers(out)) == 0, f"{what}: {opened.error()}")
    expect(np.abs(out - want).max() <= 1e-5, f"{what}: the numbers")
    opened.close()
    expect((binaries.value - before[0], loads.value - before[1]) == (of_machine_code, modules), f"{what}: {binaries.value - before[0]} of {loads.value - before[1]}")


# The stub is a device of 9.0.
fake = ptxas("fake")
plain = compiled("plain", "--target=cuda", env=fake)
check(plain, 0, 1, "PTX alone")
check(compiled("fits", "--target=cuda", "--cuda-arch=sm_90", env=fake), 1, 1, "one that fits")
check(compiled("both", "--target=x86-64,cuda", "--cuda-arch=sm_80,sm_90", "--cuda-arch=sm_100", env=fake), 1, 1, "one of three")
for arch in ("sm_80", "sm_91", "sm_100"):
    check(compiled(arch, "--target=cuda", f"--cuda-arch={arch}", env=fake), 0, 1, f"only for {arch}")
# The cache keeps them apart.
check(compiled("again", "--target=cuda", env=fake), 0, 1, "PTX alone, again")
# Its mark is in the runtime, too.
marks = {name: (folder / f"lib{name}.so").read_bytes().count(b"heedcub1") for name in ("plain", "again", "fits", "both")}
expect(marks["again"] == marks["plain"] == marks["fits"] - 1 == marks["both"] - 3, f"what stands beside the PTX: {marks}")
# A driver that takes none of it, as one that is older than ptxas.
os.environ["FAIL"], os.environ["AT"] = "cuModuleLoadDataEx", str(loads.value + 1)
check(folder / "libfits.so", 0, 2, "machine code that is refused")
del os.environ["FAIL"], os.environ["AT"]

for words, options, env in (("--cuda-arch is for the target cuda", ("--target=x86-64", "--cuda-arch=sm_90"), fake),
                            ("expected an architecture from sm_80 on for --cuda-arch, found 'sm_75'", ("--target=cuda", "--cuda-arch=sm_75"), fake),
                            ("found 'sm_90a'", ("--target=cuda", "--cuda-arch=sm_90a"), fake),
                            ("there is no 'ptxas' on PATH or in CUDA_HOME", ("--target=cuda", "--cuda-arch=sm_90"), {**os.environ, "PATH": "/nowhere", "CUDA_HOME": ""})):
    expect_error(run(heedc, model, "-o", folder / "x", *options, env=env), words, words)
done = run(heedc, model, "-o", folder / "x", "--target=cuda", "--cuda-arch=sm_90", env=ptxas("bad", 'print("ptxas fatal: no such thing"); sys.exit(1)'))
expect(done.returncode == 1 and "makes no code for sm_90 of this kernel's PTX: ptxas fatal: no such thing" in done.stderr and "attention.heed:" in done.stderr, done.stderr)
# In CUDA's own folder.
(folder / "home").mkdir()
(folder / "fake").rename(folder / "home/bin")
path = os.pathsep.join(one for one in os.environ["PATH"].split(os.pathsep) if not (pathlib.Path(one) / "ptxas").exists())
done = run(heedc, model, "-o", folder / "home.o", "--emit=obj", "--target=cuda", "--cuda-arch=sm_90", env={**os.environ, "PATH": path, "CUDA_HOME": str(folder / "home")})
expect(shutil.which("cc", path=path) is None or done.returncode == 0 and b"heedcub1" in (folder / "home.o").read_bytes(), f"CUDA_HOME: {done.stderr}")

# The real one, where it is.
if shutil.which("ptxas"):
    real = compiled("real", "--target=cuda", "--cuda-arch=sm_80,sm_90", env=os.environ)
    code = real.read_bytes()
    found = [code[at + 18:at + 20] for at in range(16, len(code)) if code[at:at + 4] == b"\x7fELF"] if code.count(b"\x7fELF") < 20 else []
    expect(found == [b"\xbe\x00"] * 2, f"two files for CUDA's machine: {found}")
    check(real, 0, 2, "real machine code, for which the stub is no device")
finish()
