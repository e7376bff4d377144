# RUN: %python %s %heed_bin %heed_src %t %cc
# The programs are linked without the sanitizer that the runtime would want.
# UNSUPPORTED: asan
"""docs/examples/two-models: two static libraries in one program, in either order, against NumPy; and one model twice."""
import pathlib
import subprocess
import sys

import numpy as np

from runs import expect, finish, run

heedc, source = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
folder, cc = pathlib.Path(sys.argv[3]), sys.argv[4]
folder.mkdir(parents=True, exist_ok=True)


def library(model, name, *options):
    for kind, file in (("lib", f"lib{name}.a"), ("header", f"{name}.h")):
        subprocess.run([heedc, source / f"models/core/{model}.heed", "--emit=" + kind, "-o", folder / file, *options],
                       check=True)
    return folder / f"lib{name}.a"


def program(name, main, *libraries):
    subprocess.run([cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", folder, "-I", source / "runtime", main,
                    *libraries, "-lm", "-lpthread", "-o", folder / name], check=True)
    return folder / name


def fill(seed, shape=(2, 4, 37, 16)):
    return (((np.arange(np.prod(shape)) * 37 + seed) % 101 - 50) / 50).reshape(shape)


def attention(causal):
    q, k, v = fill(1), fill(2), fill(3)
    s = np.einsum("bhie,bhje->bhij", q, k) / np.sqrt(q.shape[-1])
    if causal:
        s = np.where(np.tri(s.shape[-1], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return np.einsum("bhij,bhjf->bhif", p / p.sum(axis=-1, keepdims=True), v)


sdpa, causal = library("sdpa", "sdpa"), library("causal-attention", "attention")
# One model under two names: the second library may repeat no name of the first.
again = library("sdpa", "again", "--prefix=again")
example = source / "docs/examples/two-models/two.c"
for name, libraries in (("two", (sdpa, causal)), ("reversed", (causal, sdpa))):
    done = run(program(name, example, *libraries))
    expect(done.returncode == 0, f"{name}: exit code {done.returncode}: {done.stderr}")
    results = []
    for line in done.stdout.splitlines():
        if line[0].isalpha():
            results.append((line, []))
        else:
            results[-1][1].append(float(line))
    expect([title for title, _ in results] == [f"{m} 2 4 37 16" for m in ("sdpa", "attention", "sdpa")],
           f"{name}: what was run: {[title for title, _ in results]}")
    for (title, got), want in zip(results, (attention(False), attention(True), attention(False))):
        want = want.reshape(-1)
        fits = len(got) == len(want) and np.abs(np.array(got) - want).max() <= 1e-5 * np.abs(want).max()
        expect(fits, f"{name}: {title}: {got[:4]}, expected {want[:4]}")

twice = folder / "twice.c"
twice.write_text(example.read_text().replace("attention", "again"))
done = run(program("twice", twice, sdpa, again))
expect(done.returncode == 0, f"twice: exit code {done.returncode}: {done.stderr}")
parts = done.stdout.split("sdpa 2 4 37 16\n")
expect(len(parts) == 4 and parts[1] == parts[2] == parts[3] != "", "twice: three equal results of one model")

# Halide's own thread pool, memory and error handler are weak: those of the runtime take their place in every program.
listed = subprocess.run(["nm", folder / "two"], check=True, capture_output=True, text=True).stdout
kinds = {line.split()[-1]: line.split()[-2] for line in listed.splitlines()}
for hook in ("halide_do_par_for", "halide_malloc", "halide_free", "halide_error"):
    expect(kinds.get(hook) == "t", f"{hook} is Halide's own: {kinds.get(hook)}")

# Of a model one name is visible; the functions of heed.h are in every library, and a program takes them once.
for path, model in ((sdpa, "sdpa_model"), (causal, "attention_model"), (again, "again_model")):
    listed = subprocess.run(["nm", "-g", "--defined-only", path], check=True, capture_output=True, text=True).stdout
    names = {line.split()[2] for line in listed.splitlines() if len(line.split()) == 3}
    expect(model in names and "heed_run" in names, f"{path.name}: {names}")
    expect(all(name == model or name.startswith("heed_") for name in names), f"{path.name}: {names}")
finish()
