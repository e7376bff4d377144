# RUN: %python %s %heed_src %heed_build %t %cc
# The compiled libraries are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
# REQUIRES: opencl
"""bench/gpu.py at tiny sizes, on OpenCL's device and on the driver of the tests: numbers are compared before anything is timed, the table and the file are complete,
and what is wrong, refused or ends its process is named while the other cases go on. No time is judged."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import cuda_stub
from runs import expect, finish, run

source, build, folder, cc = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4]
shutil.rmtree(folder, ignore_errors=True)
cuda_stub.build(cc, source, folder / "stub")
stub = {**os.environ, "LD_LIBRARY_PATH": str(folder / "stub")}
COLUMNS = ["case", "kernels ms", "median", "call ms", "speed", "of limit", "goal", "off by"]
FULL, CAUSAL = "full N=40 E=16 B=2 H=2", "causal N=40 E=16 B=2 H=2"


def bench(*options, env=None):
    return run(sys.executable, source / "bench/gpu.py", "--build", build, "--tiny", "--seconds", "0.001", "--out", folder / "gpu.json", *options, env=env)


def cases_of(done, code=0):
    """The file's cases by name; each is in the table, too."""
    expect(done.returncode == code, f"exit code {done.returncode}: {done.stderr}")
    found = json.loads((folder / "gpu.json").read_text())
    lines = done.stdout.splitlines()
    expect(lines[0].startswith(found["name"] + ": copies at ") and "f32 peak" in lines[0], lines[0])
    at = [lines[1].find(column) for column in COLUMNS]
    expect(at[0] == 0 and at == sorted(at), f"columns: {lines[1]}")
    expect([line[:line.find("  ")] for line in lines[2:]] == [c["name"] for c in found["cases"]], done.stdout)
    return {c["name"]: c for c in found["cases"]}


def is_complete(case):
    right = 0 <= case["difference"] <= case["tolerance"] and case["tolerance"] >= 1e-5
    timed = all(0 < case[what]["best"] <= case[what]["median"] for what in ("kernels", "call")) and case["opened"] > 0
    return "failed" not in case and right and timed and all(k[1] > 0 for k in case["profile"])


# A case of each kind, compiled and run. Libraries are shared where only the call's sizes differ.
for device, words, count in (("opencl", "full,causal N=40,documents,GEMM,1x96,layer_norm 64,embedding,chain,open,M=70", 14), ("cuda", "causal N=40,1x96,open,chain", 7)):
    found = cases_of(bench("--device", device, "--folder", folder / device, "--case", words, env=stub))
    expect(len(found) == count and all(map(is_complete, found.values())), f"{device}: {len(found)} cases, {[c for c in found.values() if not is_complete(c)]}")
    chain = found["a kernel of a chain"]
    expect(chain["goal_seconds"] == 6e-6 and set(chain["of"]) == {"best", "median"} and found["open tiny B=1 N=9"]["goal_seconds"] == 0.2, f"{chain}")
    expect(found[CAUSAL]["goal"] == 0.45 and found[CAUSAL]["flops"] == 4 * 2 * 2 * 16 * 40 * 41 / 2, f"{found[CAUSAL]}")
    expect(found["row by a weight 1x96x160 bf16"]["reads"] == 4 * 96 + 2 * 96 * 160 and found["row by a weight 1x96x160 f32"]["goal"] == 0.8, "a row")

# From the folder alone, without a build. A case that is another model is wrong; what is no library, ends its process or hangs is named.
made = folder / "opencl" / "compiled.json"
compiled = json.loads(made.read_text())
expect(compiled["cases"][FULL] == compiled["cases"]["full N=80 E=16 B=1 H=2"] != compiled["cases"][CAUSAL], f"{compiled}")
libraries = {name: compiled["cases"][name]["library"] for name in (FULL, CAUSAL)}
for name, does in (("ends", "_Exit(7)"), ("hangs", "pause()")):
    (folder / f"{name}.c").write_text(f"#include <stdlib.h>\n#include <unistd.h>\n__attribute__((constructor)) static void begin(void) {{ {does}; }}\n")
    subprocess.run([*cc.split(), "-shared", "-fPIC", "-o", folder / f"opencl/{name}.so", folder / f"{name}.c"], check=True)
(folder / "opencl/none.so").write_text("")
for library, says, *more in ((libraries[FULL], "of the largest element"), ("none.so", "file too short"), ("ends.so", "its process ended with exit code 7"), (None, "it was not compiled"),
                             ("hangs.so", "it took longer than 10 s", "--limit", "10", "--case", "causal N=40")):
    compiled["cases"][CAUSAL] = {"library": library} if library else {}
    made.write_text(json.dumps(compiled))
    done = bench("--device", "opencl", "--folder", folder / "opencl", "--case", "causal N=40,layer_norm 64,full N=40", "--compiled", "--build", folder / "no build", *more)
    found = cases_of(done, 1)
    expect(says in found[CAUSAL]["failed"] and "kernels" not in found[CAUSAL], f"{says}: {found[CAUSAL]}")
    expect(more or is_complete(found[FULL]) and is_complete(found["layer_norm 64x64"]), f"{says}: the others")

# A driver that refuses a launch, and none.
done = bench("--folder", folder / "cuda", "--case", "causal N=40", "--compiled", env={**stub, "FAIL": "cuLaunchKernel", "AT": "1"})
expect("cuLaunchKernel failed (999" in cases_of(done, 1)[CAUSAL]["failed"], done.stderr)
done = bench("--folder", folder / "cuda", "--case", "causal N=40", "--compiled", env={**stub, "DEVICES": "0"})
expect(done.returncode == 1 and "cuInit failed (100)" in done.stderr and "there is no device" in done.stderr, done.stderr)
for arguments, says in ((("--case", "nothing"), "no case of a GPU is called 'nothing'"), (("--compiled", "--folder", folder / "nothing"), "has no compiled.json")):
    done = bench(*arguments)
    expect(done.returncode == 1 and says in done.stderr, done.stderr)

# All sizes are there, with the goals that are aimed at.
sys.path[:0] = [str(source / "bench")]
import goals
import gpu_cases

every = list(gpu_cases.cases_of())
aimed = {case.name: goals.goal(case.describe())[0] for case in every}
expect(len(aimed) == len(every) and all(case.group == "gpu" for case in every), "names")
for name, goal in (("full N=16384 E=128 B=1 H=8", 0.5), ("causal N=2048 E=64 B=8 H=16", 0.45), ("window 512 N=16384 E=64 B=1 H=16", 0.35), ("ALiBi + cap N=2048 E=128 B=8 H=8", 0.4),
                   ("12 documents N=2048 E=64 B=8 H=16", 0.35), ("GEMM, bias, GELU 8192x8192x8192", 0.65), ("row by a weight 1x4096x11008 bf16", 0.8),
                   ("softmax rows 2048x32768", 0.8), ("embedding 64x1024 of 131072x1024", 0.8), ("BERT base B=32 N=128", None), ("MiniLM B=1 N=128", None)):
    expect(aimed.get(name, "absent") == goal, f"{name}: {aimed.get(name, 'absent')}")
finish()
