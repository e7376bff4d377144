# RUN: %python %s %heed_bin %heed_src
"""Relative terms cost code, and by it compile time, in proportion: their loads, one a lane, are not unrolled beyond the register tile."""
import pathlib
import subprocess
import sys

heedc, models = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2]) / "models"


def lines(model, *options):
    command = [heedc, models / model, *options, "--target=x86-64-v4", "--emit=asm", "-o", "-"]
    return subprocess.run(command, check=True, capture_output=True).stdout.count(b"\n")


# With a known E a loop over it would be unrolled, too.
plain = lines("core/sdpa.heed", "--set=E=64")
for options in [], ["--set=E=64"]:
    relative = lines("position/shaw-rpr.heed", *options)
    assert relative < 2.5 * plain, f"{options}: {relative} lines of assembly, and {plain} without relative terms"
