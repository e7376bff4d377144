# REQUIRES: heedc
# Instructions of products on GPUs, and, where ptxas is, their registers.
# RUN: %python %s %S/Inputs/gpu %t
import pathlib
import shutil
import sys

import ptx

inputs, folder = map(pathlib.Path, sys.argv[1:])
folder.mkdir(parents=True, exist_ok=True)
found = []
for path in sorted(inputs.glob("*.heed")):
    for kernel in ptx.kernels(path):
        inner = ptx.loop(kernel)
        fmas, all_ = ptx.count(inner, "fma.rn.f32"), len(inner.splitlines())
        print(f"{path.stem}: {fmas} of {all_} instructions of a step are FMAs, {fmas / all_:.3f}")
        # In memory of a thread's own nothing is stored.
        assert not ptx.count(kernel, "ld.local") + ptx.count(kernel, "st.local"), path
        # A thread's operands come as vectors of four.
        assert ptx.count(inner, "ld.shared.v4.b32") and not ptx.count(inner, "ld.shared.b32"), path
        assert fmas / all_ >= {"large": 0.90, "odd": 0.85, "small": 0.75}[path.stem], path
        found.append(path.stem)
        for arch in ("sm_80", "sm_90") if shutil.which("ptxas") else ():
            for registers, spilled in ptx.assembled(kernel, folder, arch):
                print(f"{path.stem}: {arch}: {registers} registers, {spilled} bytes spilled")
                assert registers <= 128 and not spilled, path
assert found == ["large", "odd", "small"], found
