# RUN: %python %s %heed_src %heed_build %t %python
# UNSUPPORTED: asan
# (the compiled libraries are linked without the sanitizer that the runtime would want)
"""bench/ab.py: what it says of made-up cells, and a pair of equal builds on one small cell, whose time is not judged."""
import json
import pathlib
import sys

import numpy as np

from runs import expect, finish, run

source, build, folder = (pathlib.Path(a) for a in sys.argv[1:4])
sys.path.insert(0, str(source / "bench"))
import ab  # of bench/

base = {"name": "c", "why": "", "rejected": {"stolen time": 2}, "blocks": 10, "low": 1.0, "high": 1.0, "ratio": 1.0, "verdict": "tie", "compile": 1.0}
cells = [base, {**base, "verdict": "slower", "ratio": 1.1}, {**base, "verdict": "unjudged", "ratio": 3.0, "why": "few blocks"}, {"name": "d", "verdict": "failed", "why": "no"}]
lines = "\n".join(ab.summary(cells, 0.02))
expect("4 cells, by more than 2%: 1 slower, 1 tie, 1 unjudged, 1 failed" in lines, lines)
expect("B / A over the judged cells: 1.049, from 1.000 to 1.100" in lines, lines)
expect("compile B / A: 1.000 [1.000, 1.000]: tie" in lines and ab.compile_ratio([base], 0.02) is None, lines)
expect("10 of  12" in ab.line(base) and "unjudged: few blocks" in ab.line(cells[2]) and "FAILED: no" in ab.line(cells[3]), ab.line(base))
random = np.random.default_rng(1)
for log, noise, says in ((0.1, 0.05, "slower"), (-0.1, 0.05, "faster"), (0.0, 0.02, "tie"), (0.0, 0.3, "unjudged")):
    found = ab.compile_ratio([{"compile": float(x)} for x in np.exp(log + noise * random.standard_normal(40))], 0.02)
    expect(found[1] < np.exp(log) < found[2] and found[3] == says, f"{says}: {found}")

folder.mkdir(parents=True, exist_ok=True)
tool, path = (sys.argv[4], source / "bench/ab.py"), folder / "cells.json"
done = run(*tool, build, build, "--case", "small causal N=17", "--blocks", "11", "--each", "0.001", "--json", path)
# Slower, faster, unjudged: this machine had other work for one of them. That is none of this test's business.
expect(done.returncode in (0, 1, 2) and "FAILED" not in done.stdout and "small causal N=17 E=64" in done.stdout, f"{done.stdout}{done.stderr}")
cell = json.loads(path.read_text())["cells"][0]
expect(cell["blocks"] + sum(cell["rejected"].values()) in (10, 11) and 0 < cell["low"] <= cell["ratio"] <= cell["high"], f"{cell}")
expect(cell["verdict"] in ab.VERDICTS and cell["compile"] > 0 and min(cell["seconds"]) > 0, f"{cell}")
expect(run(*tool, build, build, "--case", "nothing").returncode == 1, "a case that is none")
for arguments, says in (((build, source), "is no build folder"), ((build, build, "--cores", "a", "--case", "small causal N=17"), "--cores: expected")):
    done = run(*tool, *arguments)
    expect(done.returncode == 1 and says in done.stderr, done.stderr)
finish()
