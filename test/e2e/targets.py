# RUN: %python %s %heed_bin %heed_src %t
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
"""Several targets in one artefact: each kind of it computes with the code of each target that this processor can run, the
runtime takes the best, and what it cannot run is an error."""
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np

from capi import Library, buffers
from runs import expect, expect_error, finish, run

heedc, source = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder = pathlib.Path(sys.argv[3])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
model = source / "models/core/causal-attention.heed"
os.environ.pop("HEED_TARGET", None)


def compiled(name, *options):
    done = run(heedc, model, "-o", folder / name, *options)
    expect(done.returncode == 0, f"{options}: {done.stderr}")
    return folder / name


words = set(pathlib.Path("/proc/cpuinfo").read_text().split())
NEEDS = {"x86-64-v4": {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"}, "x86-64-v3": {"avx2", "fma", "bmi2"},
         "x86-64": set()}
best = next(name for name, needs in NEEDS.items() if needs <= words)

random = np.random.default_rng(8)
arrays = {name: random.uniform(-1, 1, (1, 2, 70, 24)).astype(np.float32) for name in "qkv"}
arguments = ["--output", folder / "o.npy"]
for name, array in arrays.items():
    np.save(folder / f"{name}.npy", array)
    arguments += ["--" + name, folder / f"{name}.npy"]
q, k, v = (a.astype(np.float64) for a in arrays.values())
s = np.where(np.tri(70, dtype=bool), np.einsum("bhie,bhje->bhij", q, k) / np.sqrt(24), -np.inf)
p = np.exp(s - s.max(axis=-1, keepdims=True))
want = np.einsum("bhij,bhjf->bhif", p / p.sum(axis=-1, keepdims=True), v)

# A program.
three = "--target=x86-64,x86-64-v4,x86-64-v3,x86-64-v4"
program = compiled("program", three)
results = {}
for name in ("", *NEEDS):
    done = run(program, *arguments, env={**os.environ, "HEED_TARGET": name})
    if name and not NEEDS[name] <= words:
        expect_error(done, "was compiled for a processor with 'avx", name)
        continue
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    results[name] = np.load(folder / "o.npy")
    expect(np.abs(results[name] - want).max() <= 1e-5, f"{name}: the numbers")
expect(np.array_equal(results[""], results[best]), "the best target's code runs when none is asked for")
expect(not np.array_equal(results["x86-64"], results[best]), "the targets' code differs")
os.remove(folder / "o.npy")
expect_error(run(program, *arguments, env={**os.environ, "HEED_TARGET": "z80"}),
             "model 'attention' was compiled for x86-64-v4, x86-64-v3, x86-64, not for 'z80'", "an unknown target")
expect(not (folder / "o.npy").exists(), "an error wrote a result")
text = run(program, "--help").stdout
expect("compiled for x86-64-v4, x86-64-v3, x86-64; the best" in text and "HEED_TARGET" in text, f"--help: {text}")
# The bits of one target do not depend on the others.
alone = compiled("alone", "--target=" + best)
expect(run(alone, *arguments).returncode == 0 and np.array_equal(np.load(folder / "o.npy"), results[best]), "alone")
expect(compiled("again", three).read_bytes() == program.read_bytes(), "the same source gives the same bytes")


# A library, static and shared; only the model's one constant is for others.
two = "--target=x86-64,x86-64-v3"
shared = compiled("libshared.so", two, "--emit=shared")
archive = compiled("libstatic.a", two, "--emit=lib")
subprocess.run([os.environ.get("CC", "cc"), "-shared", "-o", folder / "libstatic.so", "-Wl,--whole-archive", archive,
                "-Wl,--no-whole-archive", "-lm", "-lpthread"], check=True)
for file in (shared, folder / "libstatic.so"):
    listed = subprocess.run(["nm", "-D", "--defined-only", file], check=True, capture_output=True, text=True).stdout
    models = [line.split()[-1] for line in listed.splitlines() if line.endswith("_model")]
    expect(models == ["attention_model"], f"{file.name} exports {models}")
    for name in ("", "x86-64-v3", "x86-64"):
        if not NEEDS.get(name, set()) <= words:
            continue
        library = Library(file, "attention", threads=1, target=name.encode())
        found = library.library.heed_target(library.handle).decode()
        expect(library.status == 0 and found == (name or ("x86-64-v3" if NEEDS["x86-64-v3"] <= words else "x86-64")),
               f"{file.name}, {name}: status {library.status}, target {found}")
        got = np.full(want.shape, np.nan, np.float32)
        status = library.run(buffers(*arrays.values()), buffers(got))
        expect(status == 0 and np.array_equal(got, results[found]), f"{file.name}, {name}: the program's bits")
        library.close()

# Text shows one target; IR and headers that do not depend on it are made as ever.
for kind in ("halide", "stmt", "llvm", "asm"):
    done = run(heedc, model, two, "--emit=" + kind, "-o", folder / "text")
    expect_error(done, f"expected one target for output of this kind, found '{two[9:]}'", kind)
expect(run(heedc, model, two, "--emit=attn").returncode == 0, "--emit=attn")
for bad in ("x86-64,z80", "x86-64,", ","):
    expect_error(run(heedc, model, "--target=" + bad, "-o", folder / "text"), "unknown target", bad)
# Temporary IR of each target has a name of its own.
compiled("kept", two, "--save-temps", "--emit=obj")
stations = [p.name for p in folder.glob("kept.*")]
expect(sorted(stations) == sorted(f"kept.{t}.{s}.mlir" for t in two[9:].split(",") for s in ("attn", "host", "llvm")),
       f"--save-temps: {stations}")
finish()
