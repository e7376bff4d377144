# RUN: %python %s %heed_src %heed_build %t %python
# The times are not looked at: only that every case compiles, runs and is counted.
# UNSUPPORTED: asan
# (the compiled programs are linked without the sanitizer that the runtime would want)
"""bench/run.py --quick: every case gives a row."""
import json
import pathlib
import sys

from runs import expect, finish, run

source, build, folder = (pathlib.Path(a) for a in sys.argv[1:4])
folder.mkdir(parents=True, exist_ok=True)
done = run(sys.argv[4], source / "bench/run.py", "--quick", "--build", build, "--json", folder / "out.json")
expect(done.returncode == 0, done.stderr)
if done.returncode == 0:
    result = json.loads((folder / "out.json").read_text())
    names = [row["case"] for row in result["cases"]]
    for word in ("full attention", "symbolic", "causal", "window", "linear attention", "GEMM", "MiniLM"):
        expect(any(word in name for name in names), f"no case '{word}': {names}")
    for row in result["cases"]:
        expect(row["case"] in done.stdout and row["system"] == "heed" and len(row["seconds"]) == 1, f"{row}")
        expect(row["seconds"][0] > 0 and row["share"] > 0 and row["gflops"] > 0, f"{row}")
    expect(result["machine"]["fma_gflops"] > 0 and result["machine"]["read_gbytes"] > 0, f"{result['machine']}")
done = run(sys.argv[4], source / "bench/run.py", "--filter", "nothing", "--build", build)
expect(done.returncode == 1 and "no case is called 'nothing'" in done.stderr, done.stderr)
finish()
