# RUN: %python %s %heed_src %heed_build %t %python
# UNSUPPORTED: asan
# (the compiled libraries are linked without the sanitizer that the runtime would want)
"""bench/run.py measures one small case without peers, and what it writes is complete. No time is judged."""
import json
import pathlib
import sys

from runs import expect, finish, run

source, build, folder = (pathlib.Path(a) for a in sys.argv[1:4])
bench = (sys.argv[4], source / "bench/run.py", "--build", build, "--out", folder)
done = run(*bench, "--peers", "none", "--case", "small causal N=17", "--rounds", "2", "--seconds", "0.001", "--threads", "1")
# 2: the machine was not quiet, which is none of this test's business.
expect(done.returncode in (0, 2), f"exit code {done.returncode}: {done.stderr}")
if done.returncode in (0, 2):
    result = json.loads((folder / "results.json").read_text())
    expect([c["name"] for c in result["cases"]] == ["small causal N=17 E=64"], f"{[c['name'] for c in result['cases']]}")
    case = result["cases"][0]
    expect(case["threads"] == 1 and case["flops"] == 4 * 8 * 64 * 17 * 18 / 2 and case["compile_seconds"] > 0, f"{case}")
    expect(len(case["limits"]) == 2 and all(x > 0 for limit in case["limits"] for x in limit), f"{case['limits']}")
    expect([s["variant"] for s in case["systems"]] == ["heed"], f"{case['systems']}")
    seconds = case["systems"][0]["seconds"]
    expect(len(seconds) == 2 and all(t > 0 for times in seconds for t in times), f"{seconds}")
    expect("small causal N=17 E=64" in done.stdout and "GFLOP/s f32 multiply-add" in done.stdout, done.stdout)

# NumPy is always there: its output is compared before it is timed.
done = run(*bench, "--peers", "with_numpy", "--case", "small causal N=17", "--rounds", "1", "--seconds", "0.001", "--threads", "1")
if done.returncode in (0, 2):
    systems = json.loads((folder / "results.json").read_text())["cases"][0]["systems"]
    expect([s["system"] for s in systems] == ["heed", "numpy"] and systems[1]["difference"] < 1e-5, f"{systems}")
else:
    expect(False, done.stderr)

done = run(*bench, "--case", "nothing")
expect(done.returncode == 1 and "no case is called 'nothing'" in done.stderr, done.stderr)
done = run(*bench, "--peers", "nobody", "--case", "small causal N=17")
expect(done.returncode == 1 and "found 'nobody'" in done.stderr, done.stderr)
finish()
