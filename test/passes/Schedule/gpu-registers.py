# REQUIRES: heedc
# Instructions of products and of attention on GPUs, and, where ptxas is, their registers.
# RUN: %python %s %S/Inputs/gpu %t
import pathlib
import re
import shutil
import sys

import ptx

inputs, folder = map(pathlib.Path, sys.argv[1:])
folder.mkdir(parents=True, exist_ok=True)


def share(instructions, at_least, what):
    """FMAs of all instructions."""
    fmas, all_ = ptx.count(instructions, "fma.rn.f32"), len(instructions.splitlines())
    print(f"{what}: {fmas} of {all_} instructions are FMAs, {fmas / all_:.3f}")
    assert fmas / all_ >= at_least, what


def check_registers(kernel, what, most=128):
    """In memory of a thread's own nothing is stored, and ptxas finds registers enough for all of it."""
    assert f".maxnreg {most}" in kernel, what
    assert not ptx.count(kernel, "ld.local") + ptx.count(kernel, "st.local"), what
    for arch in ("sm_80", "sm_90") if shutil.which("ptxas") else ():
        for registers, spilled in ptx.assembled(kernel, folder, arch):
            print(f"{what}: {arch}: {registers} registers, {spilled} bytes spilled")
            assert registers <= most and not spilled, what


def of_tiles(name):
    """The kernel of an attention's tiles; before it stand those of parts of the keys, where there may be few queries of many keys."""
    *split, tiles = ptx.kernels(inputs / f"{name}.heed")
    assert len(split) == (", M, " in (inputs / f"{name}.heed").read_text()), name
    for kernel in split:
        assert len(re.findall(r"\.visible \.entry", kernel)) == 2, name
        check_registers(kernel, f"{name}, parts of the keys")
    return tiles


def check_integers(kernel, what):
    """libHalide's types for f16 and bf16 are nowhere; what is read of them are bits."""
    assert not re.search(r"\.b?f16", kernel) and ptx.count(kernel, "shl.b32"), what


for name, at_least in {"large": 0.90, "halves": 0.78, "odd": 0.85, "small": 0.75}.items():
    [kernel] = ptx.kernels(inputs / f"{name}.heed")
    if name == "halves":
        check_integers(kernel, name)
        # Terms come by four.
        assert ptx.count(kernel, "ld.global.nc.v4.b16") + ptx.count(kernel, "ld.global.nc.v2.b32") == 4, name
    step = ptx.loop(kernel)
    share(step, at_least, f"{name}, a step")
    # A thread's operands come as vectors of four.
    assert ptx.count(step, "ld.shared.v4.b32") and not ptx.count(step, "ld.shared.b32"), name
    check_registers(kernel, name)

# Sums that are stored as f64 are widened all at once where a loop of terms ends: tiles have half of the sums.
kernels = ptx.kernels(inputs / "wide.heed")
[kernel] = [kernel for kernel in kernels if ptx.count(kernel, "fma.rn.f32") > 200 and ptx.count(kernel, "st.global.b64")]
share(ptx.loop(kernel), 0.78, "wide, a step")
check_registers(kernel, "wide")

# Without a loop around a step its operands come four terms at a time.
for kernel in ptx.kernels(inputs / "short.heed"):
    check_registers(kernel, "short")

# The products of an attention: scores, and values, where each weight may be one of an absent key.
for name in "attention-64", "attention-128", "attention-halves":
    kernel = of_tiles(name)
    if name == "attention-halves":
        check_integers(kernel, name)
    scores, values = [loop for loop in ptx.innermost(kernel) if ptx.count(loop, "fma.rn.f32") >= 32]
    share(scores, 0.75, f"{name}, scores")
    share(values, 0.40, f"{name}, values")
    assert ptx.count(scores, "ld.shared.v4.b32") and ptx.count(values, "ld.shared.v4.b32"), name
    # A turn that the mask leaves out is skipped by one branch, not stage by stage: else what a stage leaves in registers lives through all turns. Others are
    # of loops, and of the stages that some threads have.
    assert ptx.count(ptx.loop(kernel), "bra") <= 14, name
    check_registers(kernel, name, 168)

# Places that are registers through all turns, and scores that are more than their product: three blocks of 128 threads find registers for them.
for name in "offset", "rows-40", "rows-48", "rows-96", "rows-256", "biases":
    check_registers(of_tiles(name), name, 168)

# Masks that read leave registers for two queries.
for kernel in ptx.kernels(inputs / "lengths.heed"):
    check_registers(kernel, "two queries")

# Scores that read two tables leave registers for the places.
for kernel in ptx.kernels(inputs / "tables.heed"):
    check_registers(kernel, "tables")

# A thread has four queries, and weights and maxima take one instruction each for what was a polynomial and a choice. A turn of the loop over
# keys is 8 turns of the scores' loop (of eight or sixteen dims), 12 or 4 of the values' (of four or eight keys), and the rest once. ptxas makes one
# instruction of the selects that absent keys take beside each sum of a value, a predicate of the sum: 0.73 and 0.70 of its instructions are FMAs of products.
for name, turns, at_least in ("full-64", (8, 12), 0.52), ("full-128", (8, 4), 0.50), ("attention-64", (8, 12), 0.52), ("attention-128", (8, 4), 0.50), ("alibi", (8, 12), 0.50):
    kernel = of_tiles(name)
    scores, values = [loop for loop in ptx.innermost(kernel) if ptx.count(loop, "fma.rn.f32") >= 32]
    share(scores, 0.80, f"{name}, scores")
    lengths = [len(part.splitlines()) for part in (scores, values)]
    fmas = sum(times * ptx.count(part, "fma.rn.f32") for times, part in zip(turns, (scores, values)))
    all_ = len(ptx.loop(kernel).splitlines()) + sum((times - 1) * length for times, length in zip(turns, lengths))
    print(f"{name}, a turn: {fmas} of {all_}, {fmas / all_:.3f}")
    assert fmas / all_ >= at_least, name
    # Keys and values come as vectors of four; the slope of a head alone does not.
    assert ptx.count(ptx.loop(kernel), "ld.global.nc.v2.b64") and ptx.count(ptx.loop(kernel), "ld.global.nc.b32") == (name == "alibi"), name
    assert ptx.count(kernel, "ex2.approx.ftz.f32") and ptx.count(kernel, "max.f32"), name
    check_registers(kernel, name, 128 if "full" in name else 168)
