# RUN: %python %s %heed_src
"""bench/report.py and page.py: docs/performance.md is what they make of docs/performance.json, and what they say of made-up cells."""
import copy
import json
import pathlib
import sys
import tempfile

from runs import expect, finish

source = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(source / "bench"))
import cases  # of bench/
import goals
import measure
import page
import report

stored = json.loads((source / "docs/performance.json").read_text())
expect((source / "docs/performance.md").read_text() == page.markdown(stored),
       "docs/performance.md is not what `make bench REPORT=1` writes from docs/performance.json")
for group, name in page.OWN_PAGE.items():
    run = source / f"docs/{name}.json"
    expect(not run.exists() or (source / f"docs/{name}.md").read_text() == page.markdown(json.loads(run.read_text()), name),
           f"docs/{name}.md is not what `make bench CASE={group} REPORT=1` writes from docs/{name}.json")
for name in stored.get("pictures", []):
    expect((source / f"docs/performance/{name}.svg").exists(), f"no picture {name}")


def block(a, b=None, peak=100.0, why=None):
    made = {"A": [a, a], "limits": [[peak, 10.0, 10.0]] * (3 if b is None else 5), "why": why}
    return made if b is None else {**made, "B": [b, b]}


def row(system, variant, blocks, group="peer", trial=0.02):
    return {"system": system, "variant": variant, "group": group, "threads": 2, "difference": 1e-7, "prepare_seconds": 0, "trial": [trial], "blocks": blocks}


# 100 GFLOP/s and 10 GB/s: 1e9 operations take at least 10 ms, 1e9 bytes read and half as many written 150 ms.
case = {"name": "c", "group": "gemm", "kind": "gemm", "params": {"N": 64}, "threads": 2, "flops": 1e9, "reads": 4e6, "writes": 4e6, "gate": 0.6,
        "grows": "", "rounded": "", "cached": False, "memory": False, "absent": {"x": "too old"}, "compile_seconds": 0.5, "time": "t",
        "systems": [row("heed", "heed", []), row("p", "p fast", [block(0.02, 0.01)] * 10), row("slow", "slow", [], trial=0.5)]}
run = {"version": "1", "commit": "abc", "compiler": "x", "target": "host", "clock": "wall", "within": 0.015, "moved": 0.03, "began": "b", "ended": "e",
       "minutes": 1, "machine": {"cpu": "c", "cores": [0, 1]}, "systems": {"p": "1"}, "cases": [case]}


def changed(**more):
    return {**copy.deepcopy(case), **more}


def cell(made):
    return report.cell(made, 0.015)


one = cell(case)
expect(abs(one["share"] - 0.5) < 1e-9 and one["bound"] == "FMA" and one["best"] == 0.02, f"{one}")
expect(one["peer"] == "p fast" and all(abs(one[x] - 0.5) < 1e-9 for x in ("ratio", "low", "high")) and one["verdict"] == "behind", f"{one}")
expect((one["goal"], one["goal_ratio"]) == (0.92, 1.1), f"{one}")
expect(abs(measure.floor({"flops": 1e9, "reads": 1e9, "writes": 5e8, "cached": False}, (100, 10, 10)) - 0.15) < 1e-9, "the floor of memory")
expect(abs(measure.floor({"flops": 1e9, "reads": 1e9, "writes": 5e8, "cached": True}, (100, 10, 10)) - 0.01) < 1e-9, "the floor in a cache")
expect(abs(measure.floor({"flops": 1e9, "reads": 1e9, "writes": 5e8, "cached": False, "copies": True}, (100, 10, 10, 5)) - 0.3) < 1e-9, "the floor of a copy")
expect(abs(measure.floor({"flops": 1e9, "reads": 1e9, "writes": 5e8, "cached": False}, (100, 0, 0)) - 0.01) < 1e-9, "no bandwidth was measured")

# Each slot against its own peak: half of the blocks at half the clock.
halved = changed(systems=[row("heed", "heed", []), row("p", "p", [block(0.02, 0.01), block(0.04, 0.02, peak=50.0)] * 6)])
expect(abs(cell(halved)["share"] - 0.5) < 1e-9 and abs(cell(halved)["ratio"] - 0.5) < 1e-9, f"{cell(halved)}")

# A rejected block has no say, neither in the ratio nor in the times.
odd = changed(systems=[row("heed", "heed", []), row("p", "p", [block(0.02, 0.03)] * 10 + [block(0.001, 0.03, why="stolen time")] * 5)])
found = cell(odd)
expect(found["best"] == 0.02 and abs(found["ratio"] - 1.5) < 1e-9 and found["verdict"] == "ahead" and found["rejected"] == {"stolen time": 5}, f"{found}")
# Too many of them: unjudged, with the interval of all.
lost = changed(systems=[row("heed", "heed", []), row("p", "p", [block(0.02, 0.03)] * 9 + [block(0.02, 0.04, why="stolen time")] * 51)])
found = cell(lost)
expect(found["verdict"] == "unjudged" and found["low"] is not None and "9 of 60" in found["why"], f"{found}")
# The best of two peers judges, and the prototype by itself.
two = changed(systems=[row("heed", "heed", []), row("p", "p", [block(0.02, 0.03)] * 10), row("q", "q", [block(0.02, 0.024)] * 10),
                       row("prototype", "prototype safe", [block(0.02, 0.018)] * 10, "prototype")])
found = cell(two)
expect(found["peer"] == "q" and abs(found["ratio"] - 1.2) < 1e-9 and found["verdict"] == "ahead" and found["peer_median"] == 0.024, f"{found}")
expect(found["prototype"]["verdict"] == "behind" and abs(found["prototype"]["ratio"] - 0.9) < 1e-9, f"{found['prototype']}")
alone = changed(systems=[row("heed", "heed", [block(0.02)] * 10)])
expect(cell(alone)["verdict"] == "alone" and cell(alone)["share"] == 0.5, f"{cell(alone)}")

lonely = changed(systems=[row("heed", "heed", [block(0.02)] * 9 + [block(0.02, why="stolen time")] * 2)])
expect(cell(lonely)["verdict"] == "unjudged" and "9 of 11" in cell(lonely)["why"], f"{cell(lonely)}")

page_of = lambda *found: page.markdown(report.summary({**run, "cases": list(found)}))
text_of = lambda *found: report.text(report.summary({**run, "cases": list(found)}))
broken = {k: case[k] for k in ("name", "group", "kind", "params", "threads")}
broken.update(failed="no agreement\nmore", systems=[], absent={})
made = page_of(case, odd, lost, two, alone, broken)
first = made.split("\n")[3]
expect(first == "- 6 cells beside the best peer: 2 ahead, 1 behind, 1 unjudged, 1 alone, 1 failed", first)
expect("goals: ratio to the best peer reached in 2 of 3 judged cells, share of the limit in 0 of 4; gates (share): 0 of 4" in made, made)
expect("1 cells beside the prototype: 1 behind" in made and "| c | 2 | prototype safe | 0.900 [0.900, 0.900] | behind |" in made, made)
expect("| c | 2 | 9 of 60 blocks undisturbed | 51 stolen time |" in made and "| x | too old | c |" in made and "failed: no agreement |" in made, made)
expect("500.0 *" in page_of(case) and "commit abc" in made and "0.60 (!)" in made and "0.92 (!)" in made and "1.10 (!)" in page_of(case), page_of(case))
expect("unjudged: c (2): 9 of 60" in text_of(lost) and "behind" in report.line(cell(case)) and "failed" in report.line(cell(broken)), text_of(lost))

# 1000 operations a second against 2000 of the round size; 1.6 times the speed with two threads.
expect("an operation of odd costs 2.00 times one of c" in text_of(case, changed(name="odd", rounded="c", flops=5e8)), "a cliff")
disturbed = changed(name="odd", rounded="c", flops=5e8, systems=lost["systems"])
expect("cliff" not in text_of(case, disturbed), "a cliff in an unjudged cell")
long = {"group": "attention", "params": {"N": 2048, "M": 2048, "E": 32, "mask": "full"}}
single = changed(**long, threads=1, systems=[row("heed", "heed", [block(0.032)] * 10)])
expect("two threads bring c only 1.60 times" in text_of(single, changed(**long)), "two threads")

# Cells of the zoo: the kernels that take the time, a list of what is below half of its limit, a page of their own.
spent = [["attention", 0.006, 9e8, 0], ["rows", 0.0031, 1e8, 0], ["attention", 0.001, 0, 0], ["little", 0.0009, 0, 0]]
zoo = changed(name="z", group="zoo", kernels=spent, systems=[row("heed", "heed", []), row("p", "p", [block(0.04, 0.06)] * 10)])
quick = changed(name="q", group="zoo", kernels=spent, systems=[row("heed", "heed", []), row("p", "p", [block(0.0125, 0.015)] * 10)])
found = cell(zoo)["kernels"]
expect([k[0] for k in found] == ["attention", "rows"] and abs(found[0][1] - 7 / 11) < 1e-9 and abs(found[0][2] - 0.9) < 1e-9, f"{found}")
made = report.summary({**run, "cases": [case, zoo, quick]})
expect(report.below(made) == [["z", "0.25 of FMA", "`attention` 64%, `rows` 28%"]], f"{report.below(made)}")
expect("zoo: peer / Heed is 1.35 in the median of 2 judged cells, 1.20 at least" in report.verdict(made), f"{report.verdict(made)}")
with tempfile.TemporaryDirectory() as docs:
    page.write({**run, "cases": [zoo, quick]}, docs, docs)
    expect(sorted(p.name for p in pathlib.Path(docs).iterdir()) == ["zoo-performance.json", "zoo-performance.md"], "a page of its own")
    text = pathlib.Path(docs, "zoo-performance.md").read_text()
    expect("## Below half of the limit" in text and "| z | 0.25 of FMA |" in text and "| q |" in text, text)
    page.write({**run, "cases": [case, zoo]}, docs, docs)
    first = pathlib.Path(docs, "performance.md").read_text()
    expect("| c |" in first and "| z |" not in first and "| z |" in pathlib.Path(docs, "zoo-performance.md").read_text(), first)

# Goals are those of cases that there are.
aimed = {c.name: goals.goal(c.describe()) for c in cases.cases()}
expect(aimed["causal N=2048 E=64 H=8"] == (0.80, 1.5) and aimed["full N=8192 E=64 H=8"] == (0.85, 1.2), f"{aimed}")
expect(aimed["decode M=16384 E=128 H=8/8"] == aimed["decode by causal attention M=16384 E=128 H=8/8"] == (0.90, 1.4), "decode")
expect(aimed["talking-heads N=512 E=64 H=12"] == (0.50, 1.3), "the zoo")
expect(aimed["window 512 N=4096 E=64"] == (0.60, 3.0) and aimed["full N=2048 E=32"] == (None, None), "window")
finish()
