# RUN: %python %s %heed_bin %heed_src %t some
"""Any number of the schedule in --emit=halide may be edited: compiled on, the program gives the same results. Promises may be wrong
after an edit: then the compiler says so at the promise.

`some` tries a few of the edits, spread evenly; `all` tries each, which takes half an hour.
"""
import pathlib
import re
import subprocess
import sys

import numpy as np

heedc, source = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2]) / "models/core/causal-attention.heed"
folder, count = pathlib.Path(sys.argv[3]), sys.argv[4]
folder.mkdir(parents=True, exist_ok=True)
subprocess.run([heedc, source, "--emit=halide", "-o", folder / "kernels.mlir"], check=True)
lines = (folder / "kernels.mlir").read_text().splitlines()


def oracle(q, k, v):
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    heads, (groups, m) = q.shape[1], k.shape[1:3]
    k, v = (a[:, np.arange(heads) * groups // heads] for a in (k, v))
    s = np.einsum("bhie,bhje->bhij", q, k) / np.sqrt(q.shape[3])
    mask = np.arange(m)[None, :] <= np.arange(q.shape[2])[:, None] + (m - q.shape[2])
    s = np.where(mask, s, -np.inf)
    top = s.max(axis=-1, keepdims=True, initial=-np.inf)
    p = np.where(mask, np.exp(s - np.where(np.isfinite(top), top, 0)), 0)
    total = p.sum(axis=-1, keepdims=True)
    return np.einsum("bhij,bhjf->bhif", p / np.where(total == 0, 1, total), v)


#        B  H  G  N    M    E   F
SIZES = [(1, 2, 1, 131, 131, 19, 21), (2, 2, 2, 17, 300, 8, 16), (1, 1, 1, 5, 3, 1, 1), (1, 2, 1, 3, 300, 20, 19), (1, 4, 2, 1, 300, 20, 19)]
random = np.random.default_rng(5)
cases = []
for k, (b, h, g, n, m, e, f) in enumerate(SIZES):
    arrays = [random.uniform(-1, 1, s).astype("f") for s in ((b, h, n, e), (b, g, m, e), (b, g, m, f))]
    for name, array in zip("qkv", arrays):
        np.save(folder / f"{name}{k}.npy", array)
    cases.append(oracle(*arrays))


def edits():
    """(line, old number, new number, edited lines, whether it may be refused) of each number of a schedule."""
    constant = {m[1]: int(m[2]) for line in lines if (m := re.match(r" +(%\S+) = arith.constant (\d+) : i32$", line))}
    for k, line in enumerate(lines):
        if m := re.search(r"halide\.split .* by (\d+)", line):
            old, isPromise = int(m[1]), False
        elif (m := re.search(r"halide\.bound.* extent (%\S+)$", line)) and m[1] in constant:
            old, isPromise = constant[m[1]], True
        else:
            continue
        for new in sorted({1, old // 2, 3 * old // 4, 2 * old} - {0, old}):
            edited = [f"    %edited = arith.constant {new} : i32", line[:m.start(1)] + "%edited"] if isPromise else \
                     [line[:m.start(1)] + str(new) + line[m.end(1):]]
            yield k, old, new, edited, isPromise


def attempt(number, where, old, new, edited, isPromise):
    return compiled_on(number, lines[:where] + edited + lines[where + 1:])


def compiled_on(number, text):
    """What became of the edited lines: 'same', 'refused: why', or 'WRONG: how'."""
    file, program = folder / f"edit{number}.mlir", folder / f"edit{number}"
    file.write_text("\n".join(text) + "\n")
    done = subprocess.run([heedc, file, "-o", program], capture_output=True, text=True)
    if done.returncode:
        if done.returncode != 1 or f"edit{number}.mlir:" not in done.stderr:
            return f"WRONG: exit code {done.returncode}: {done.stderr}"
        return "refused: " + done.stderr.splitlines()[0].split(".mlir:")[-1]
    for k, want in enumerate(cases):
        run = subprocess.run([program, *(x for n in "qkv" for x in ("--" + n, folder / f"{n}{k}.npy")),
                              "--output", folder / f"o{number}.npy"], capture_output=True, text=True)
        if run.returncode:
            return f"WRONG: the program failed with {run.returncode}: {run.stderr}"
        error = np.abs(np.load(folder / f"o{number}.npy") - want).max()
        if not error <= 1e-5:
            return f"WRONG: error {error:.1e} at {SIZES[k]}"
    program.unlink()
    return "same"


wrong = 0
every = list(edits())
for number in range(len(every)) if count == "all" else np.linspace(0, len(every) - 1, 8).astype(int):
    where, old, new, edited, isPromise = every[number]
    result = attempt(number, *every[number])
    wrong += result != "same" and not (isPromise and "(promise.c1)" in result)
    print(f"{number} of {len(every)}: {old} -> {new} in {lines[where].strip()}: {result}", flush=True)
print("wrong:", wrong)
sys.exit(wrong != 0)
