# RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin/heedc %t
"""`heedc file.einsum`: products of tensors in one line, against NumPy's einsum in float64, compiled and by the reference backend; and what is wrong with a line."""
import pathlib
import sys

import numpy as np

import programs
from runs import expect, expect_error, finish, run

heedc, folder = sys.argv[1], pathlib.Path(sys.argv[2])
programs.start(heedc, folder)
rng = np.random.default_rng(3)
EXTENTS = {"b": 2, "h": 3, "i": 17, "j": 9, "k": 33, "e": 5}

for number, text in enumerate(["ij,jk->ik", "bhie,bhje->bhij", "ij->ji", "i,j->ij", "ij,ij->", "bij,jk,ke->be", "i,i,i->i"]):
    source = folder / f"m{number}.einsum"
    source.write_text(text + "\n")
    operands = text.split("->")[0].split(",")
    arrays = [rng.standard_normal([EXTENTS[c] for c in o]).astype(np.float32) for o in operands]
    expected = np.einsum(text, *(a.astype(np.float64) for a in arrays))
    for options in [], ["--backend=reference"]:
        program = folder / f"m{number}{len(options)}"
        done = run(heedc, source, "-o", program, *options)
        expect(done.returncode == 0, f"{text}: {done.stderr}")
        programs.compare(program, {f"x{k}": a for k, a in enumerate(arrays)}, {"y": expected})

done = run(folder / "m00", "--x0", "4x5", "--x1", "6x7", "--bench", "1")
expect_error(done, "extent of 'x1' (axis 0) is 6, expected J = 5")

for text, message in {"ij,jk": "1:6: error: expected ',' or '->', found the end", "ii->i": "1:2: error: expected each letter once, found 'i' twice",
                      "ij->k": "1:5: error: expected a letter of an operand, found 'k'", ",i->i": "1:1: error: expected a letter for each axis, found ','",
                      "i->i!": "1:5: error: expected the end, found '!'"}.items():
    source = folder / "bad.einsum"
    source.write_text(text)
    done = run(heedc, source, "-o", folder / "bad")
    expect(done.returncode == 1 and message in done.stderr, f"{text}: {done.stderr}")
finish()
