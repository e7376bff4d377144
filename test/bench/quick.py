# RUN: %python %s %heed_src %heed_build %t %python
# UNSUPPORTED: asan
# (the compiled libraries are linked without the sanitizer that the runtime would want)
"""bench/run.py measures small cells, what it writes is complete, and a run goes on where it stopped. No time is judged."""
import json
import pathlib
import shutil
import sys

from runs import expect, finish, run

source, build, folder = (pathlib.Path(a) for a in sys.argv[1:4])
shutil.rmtree(folder, ignore_errors=True)
bench = (sys.argv[4], source / "bench/run.py", "--build", build, "--out", folder, "--each", "0.001", "--blocks", "11", "--threads", "1")
ONE, TWO = "small causal N=17 E=64", "small full N=17 E=64"


def measured(*more):
    """The run's file; 2: the machine was not quiet, which is none of this test's business."""
    done = run(*bench, *more)
    expect(done.returncode in (0, 2), f"exit code {done.returncode}: {done.stderr}")
    return json.loads((folder / "results.json").read_text()), done


found, done = measured("--peers", "none", "--case", "small causal N=17")
expect([c["name"] for c in found["cases"]] == [ONE], f"{[c['name'] for c in found['cases']]}")
case = found["cases"][0]
expect(case["threads"] == 1 and case["flops"] == 4 * 8 * 64 * 17 * 18 / 2 and case["compile_seconds"] > 0, f"{case}")
row = case["systems"][0]
expect(row["variant"] == "heed" and 0 <= row["difference"] <= case["tolerance"] and 10 <= len(row["blocks"]) <= 11, f"{row}")
expect(all(len(b["A"]) == 2 and len(b["limits"]) == 3 and min(b["A"]) > 0 and b["limits"][0][0] > 0 for b in row["blocks"]), f"{row['blocks']}")
expect(found["commit"] and len(found["compiler"]) == 12 and found["machine"]["cores"] and case["time"] <= found["ended"], f"{found['commit']}")
expect(ONE in done.stdout and "GFLOP/s f32 multiply-add" in done.stdout and "1 cells beside the best peer: 1 " in done.stdout, done.stdout)

# NumPy is always there: its output is compared with float64 before it is timed. The run goes on: the cell that is there stays.
found, done = measured("--peers", "with_numpy", "--case", "small full N=17", "--keep")
expect([c["name"] for c in found["cases"]] == [TWO, ONE] and found["cases"][1] == case, "--keep lost a cell, or its order")
systems = found["cases"][0]["systems"]
expect([s["system"] for s in systems] == ["heed", "numpy"] and systems[1]["difference"] < 1e-5 and systems[1]["group"] == "peer", f"{systems}")
expect(not systems[0]["blocks"] and all(len(b["A"]) == len(b["B"]) == 2 and len(b["limits"]) == 5 for b in systems[1]["blocks"]), f"{systems}")
again, done = measured("--peers", "with_numpy", "--case", "small causal N=17", "--keep")
expect(again["cases"][0] == found["cases"][0] and again["cases"][1] != case and again["minutes"] >= found["minutes"], "a cell is measured again")
# Nothing begins after the time; what is there stays.
later, done = measured("--peers", "none", "--case", "small", "--keep", "--minutes", "0")
expect(later["cases"] == again["cases"] and "are left: --keep goes on" in done.stderr, done.stderr)
# A run of another commit, or of another compiler, is none to go on with.
for key in ("commit", "compiler", "within"):
    (folder / "results.json").write_text(json.dumps({**again, key: "x"}))
    done = run(*bench, "--keep", "--case", "small causal N=17")
    expect(done.returncode == 1 and f"is of another {key}" in done.stderr, done.stderr)

for arguments, says in ((("--case", "nothing"), "no case is called 'nothing'"), (("--report", "--case", "small causal N=17"), "pages of whole groups"),
                        (("--peers", "nobody", "--case", "small causal N=17"), "found 'nobody'"),
                        (("--cores", "x", "--case", "small causal N=17"), "--cores: expected"), (("--threads", "1,9999"), "--threads: expected")):
    done = run(*bench, *arguments)
    expect(done.returncode == 1 and says in done.stderr, done.stderr)
done = run(*bench, "--list")
names = [line.split(None, 1)[1] for line in done.stdout.splitlines()]
expect(names.index("causal N=2048 E=64 H=8") < names.index("full N=2048 E=32") < names.index(ONE), "what has goals comes first, small sizes last")
finish()
