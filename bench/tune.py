"""Are the formulas of tile sizes right on this machine? A search of their neighbourhood.

Schedules take their tiles from the description of the target. Each case is compiled for descriptions with other caches and fewer
registers than this machine's, which makes tiles of the neighbourhood, and all that differ run in turn (A B A B ...). Exit code 1
where one of them is faster than the formulas' own choice by more than `--slack`, or where none differs: then nothing was searched.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

from cases import chosen
from compiled import write_inputs
from process import Worker
from quiet import cores_of

CASES = ("full N=2048 E=64 H=8", "full N=2048 E=128", "causal N=2048 E=64 H=8", "window 512 N=4096 E=64", "product 512x512x512",
         "BERT QKV", "linear attention N=8192 E=64")
# What of the description is changed, and by how much.
FACTORS = {"l1": (0.5, 0.75, 1.5, 2), "l2": (0.5, 2), "l3": (0.25, 4), "vector_registers": (0.5, 0.75)}


def tool(options, name, *arguments):
    done = subprocess.run([os.path.join(options.build, "bin", name), *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench: error: {name}: {done.stderr.strip()}")
    return done.stdout


def kernels(case, told, folder, options):
    """Label -> IR of kernels, the formulas' own choice first; what equals an earlier one is left out."""
    more = ["--weights", told["weights_file"]] if told["weights_file"] else []
    source = tool(options, "heedc", case.source, *case.options, *more, "--emit=attn", "-o", "-")
    target = f"--target={options.target}"
    description = re.search(r"halide\.target = \{.*?\}", tool(options, "heedc", case.source, *case.options, *more, "--emit=halide",
                                                             "-o", "-", target))[0]
    found = {}
    for label, text in {"formula": description, **{
            f"{key} x {factor}": re.sub(rf"\b{key} = (\d+)", lambda m: f"{key} = {int(int(m[1]) * factor)}", description)
            for key, factors in FACTORS.items() for factor in factors}}.items():
        path = os.path.join(folder, "attn.mlir")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source.replace("module attributes {", "module attributes {" + text + ", ", 1))
        made = tool(options, "heed-opt", "--heed-kernels", path).replace(text, description)
        if made not in found.values():
            found[label] = made
    return found


def compiled(case, told, folder, options):
    """Label -> what a worker is told of the case's library."""
    libraries = {}
    for number, (label, text) in enumerate(kernels(case, told, folder, options).items()):
        path, library = os.path.join(folder, f"kernels{number}.mlir"), os.path.join(folder, f"model{number}.so")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        tool(options, "heedc", path, "--emit=shared", "--prefix=bench", f"--target={options.target}", "-o", library)
        libraries[label] = {**told, "library": library, "prefix": "bench"}
    return libraries


def measure(libraries, folder, options):
    """Label -> best seconds of a run, of rounds in turn."""
    processes, best = {}, {label: float("inf") for label in libraries}
    for label, told in libraries.items():
        processes[label] = Worker("heed", cores_of("")[:1], folder)
        answer = processes[label].ask(do="prepare", case=told, folder=folder)
        if "error" in answer or answer["absent"]:
            sys.exit(f"bench: error: {label}: {answer}")
    for number in range(options.rounds):
        for label in list(processes) if number % 2 == 0 else reversed(processes):
            answer = processes[label].ask(do="time", variant="heed", seconds=0.05, least=2, cpu=True)
            best[label] = min(best[label], *answer["seconds"])
    for process in processes.values():
        process.close()
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="the build folder (default: build)")
    parser.add_argument("--case", default=",".join(CASES), help="cases by parts of their names, with commas (default: one a family)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--slack", type=float, default=0.05, help="the most that a neighbour may be faster (default: 0.05)")
    parser.add_argument("--target", default="host", help="for heedc")
    options = parser.parse_args()
    behind = 0
    for case in chosen([w.strip() for w in options.case.split(",")], quick=False):
        with tempfile.TemporaryDirectory() as folder:
            told = write_inputs(case, folder)[0]
            best = measure(compiled(case, told, folder, options), folder, options)
        own = best.pop("formula")
        if not best:
            print(f"{case.name}: no description gives other tiles (!)", flush=True)
            behind += 1
            continue
        print(f"{case.name}: {own * 1e3:.3f} ms with the formulas' tiles, processor time of one thread", flush=True)
        for label, seconds in best.items():
            late = seconds * (1 + options.slack) < own
            behind += late
            print(f"  {label:22} {seconds / own:.3f} of that{' (!)' if late else ''}", flush=True)
    print(f"{behind} of what was searched shows no right choice")
    return behind > 0


if __name__ == "__main__":
    sys.exit(main())
