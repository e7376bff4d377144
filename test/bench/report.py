# RUN: %python %s %heed_src
"""bench/report.py: docs/performance.md is what it makes of docs/performance.json, and it says what is behind or unsteady."""
import copy
import json
import pathlib
import sys

from runs import expect, finish

source = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(source / "bench"))
import report  # of bench/

stored = json.loads((source / "docs/performance.json").read_text())
expect((source / "docs/performance.md").read_text() == report.markdown(stored),
       "docs/performance.md is not what `make bench REPORT=1` writes from docs/performance.json")
for name in stored.get("pictures", []):
    expect((source / f"docs/performance/{name}.svg").exists(), f"no picture {name}")

# 100 GFLOP/s and 10 GB/s: 1e9 operations take at least 10 ms, 1e9 bytes read and half as many written 150 ms.
case = {"name": "c", "group": "gemm", "kind": "gemm", "params": {"N": 4}, "threads": 2, "flops": 1e9, "reads": 4e6, "writes": 4e6,
        "gate": 0.6, "grows": "", "rounded": "", "cached": False, "limits": [[100, 10, 10], [100, 10, 10], [50, 10, 10]], "absent": {"x": "too old"},
        "compile_seconds": 0.5,
        "systems": [{"system": "heed", "variant": "heed", "seconds": [[0.02, 0.02], [0.02], [0.04]]},
                    {"system": "p", "variant": "p fast", "seconds": [[0.01], [0.01], [0.03]]}]}
run = {"version": "1", "target": "host", "rounds": 3, "clock": "wall", "date": "d", "minutes": 1, "whole": False, "steady": 0.05,
       "machine": {"cpu": "c", "threads": 2}, "systems": {"p": "1"}, "cases": [case]}
cell = report.cell(case)
# Each round against its own peak: 10 / 20, 10 / 20, 20 / 40.
expect(abs(cell["share"] - 0.5) < 1e-9 and cell["bound"] == "FMA", f"{cell}")
expect(cell["best"] == 0.02 and cell["peer"] == "p fast" and cell["ratio"] == 0.5, f"{cell}")
expect(abs(report.floor({"flops": 1e9, "reads": 1e9, "writes": 5e8, "cached": False}, (100, 10, 10)) - 0.15) < 1e-9, "the floor of memory")
expect(abs(report.floor({"flops": 1e9, "reads": 1e9, "writes": 5e8, "cached": True}, (100, 10, 10)) - 0.01) < 1e-9, "the floor in a cache")
one = report.summary(run)
expect(report.judged(one), f"{one['limits']}")
page = report.markdown(one)
expect("0.50 (!)" in page and "ahead of every peer in 0 of 1" in page and "below its share of the limit in 1 of 1" in page, page)
expect("| x | too old | c |" in page, page)
other = copy.deepcopy(case)
other["limits"] = [[106, 10, 10]] * 3
varied = report.summary({**run, "cases": [case, other]})
expect(not report.judged(varied) and "NOT JUDGED" in report.text(varied), report.text(varied))
other["limits"] = [[104, 10, 10]] * 3
expect(report.judged(report.summary({**run, "cases": [case, other]})), "4 % is steady enough")

# 1000 operations a second against 2000 of the round size; 1.6 times the speed with two threads.
odd = {**case, "name": "odd", "rounded": "c", "flops": 5e8}
page = report.text(report.summary({**run, "cases": [case, odd]}))
expect("an operation of odd costs 2.00 times one of c" in page, page)
alone = {**case, "group": "attention", "params": {"N": 2048}}
single = copy.deepcopy({**alone, "threads": 1})
single["systems"][0]["seconds"] = [[0.032]] * 3
page = report.text(report.summary({**run, "cases": [single, alone]}))
expect("two threads bring c only 1.60 times" in page, page)

broken = {k: case[k] for k in ("name", "group", "kind", "params", "threads")}
broken.update(failed="no agreement\nmore", systems=[], absent={})
page = report.markdown(report.summary({**run, "cases": [broken]}))
expect("failed: no agreement |" in page, page)
finish()
