"""Is one build faster than another? Runs both on the suite's cells, in blocks, and gives the ratio of their times with its 95 % interval.

One thread, processor time by default, blocks P A P B P B P A P on the same inputs and core; a block is rejected as in run.py (stolen
time, involuntary switches, a peak that moved). Arrays and libraries are made anew every few blocks, because where they lie is part of
the noise. Of a cell blocks are run until the interval is within --within, 60 blocks are done or --seconds spent. The ratio is that of
B's time to A's: above 1 B is slower. Verdicts: slower or faster (by more than --margin, with confidence), tie, unjudged. Exit code 1:
something failed, an output is wrong, or B is slower in a cell or compiles more slowly; 2: a cell, or compile time, is unjudged.
"""
import argparse
import ctypes
import json
import math
import os
import sys
import tempfile
import time

import numpy as np

import blocks
import quiet
import reference
import report
from cases import chosen
from compiled import compile_case, expected, write_inputs
from estimate import MOST, interval, is_narrow
from machine import Machine
from process import Worker
from results import fingerprint, now

FRESH = 4  # blocks, before arrays and libraries are made anew
VERDICTS = ("slower", "faster", "tie", "unjudged", "failed")


def fail(message):
    sys.exit(f"bench: error: {message}")


def module_for(library, prefix):
    """The module of systems/ that speaks this library's C interface; its description begins with the version."""
    version = ctypes.c_int32.in_dll(ctypes.CDLL(library), prefix + "_model").value
    return "heed_abi2" if version == 2 else "heed"


class Side:
    """One build's library of a case, in a process of its own."""

    def __init__(self, build, name, folder, cores, target):
        self.build, self.name, self.folder, self.cores, self.target = build, name, os.path.join(folder, name), cores, target
        self.workers = {}

    def compile(self, case, told, folder):
        """Processor seconds of heedc."""
        library = tempfile.mkdtemp(dir=self.folder)
        if "config" in case.params:
            os.symlink(os.path.join(folder, "config.json"), os.path.join(library, "config.json"))
        self.told, self.inputs = dict(told), folder
        made = compile_case(case, self.told, library, self.build, self.target)
        if "error" in made:
            raise RuntimeError(f"{self.name}: {made['error']}")
        module = module_for(self.told["library"], self.told["prefix"])
        if module not in self.workers:
            self.workers[module] = Worker(module, self.cores, self.folder)
        self.worker = self.workers[module]
        return made["cpu"]

    def ask(self, **request):
        answer = self.worker.ask(**request)
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer

    def prepare(self, right):
        """With arrays and a library that lie elsewhere than before."""
        self.ask(do="release")
        answer = self.ask(do="prepare", case=self.told, folder=self.inputs)
        if answer["absent"]:
            raise RuntimeError(f"{self.name}: {answer['absent']}")
        path = answer["variants"]["heed"]["output"]
        apart = reference.difference(right[0], np.load(path))
        os.unlink(path)
        if not apart <= right[1]:
            raise RuntimeError(f"{self.name}: its output differs from float64 by {apart:.2e}, {right[1]:.1e} is allowed")

    def slot(self, options):
        answer = self.ask(do="time", variant="heed", seconds=options.each, least=3, cpu=options.clock == "cpu")
        return answer["seconds"], answer["switches"], answer["spent"]

    def close(self):
        for worker in self.workers.values():
            worker.close()


def compare(case, sides, machine, cores, folder, options):
    """What the table says of the cell."""
    told, inputs, weights = write_inputs(case, folder)
    right = expected(case, inputs, weights)
    a, b = sides
    compiled = {a: [], b: []}
    for side in (a, b, b, a):
        compiled[side].append(side.compile(case, told, folder))
    end, count = time.monotonic() + options.seconds, 0

    def block(_):
        nonlocal count
        if count % FRESH == 0:
            for side in sides:
                side.prepare(right)
        count += 1
        return blocks.run_block({"A": lambda: a.slot(options), "B": lambda: b.slot(options)}, lambda: machine.measure(False), cores, clock=options.clock, moved=options.moved)

    try:
        series, made = blocks.race(["b"], block, lambda: time.monotonic() < end, options.within, options.blocks)["b"]
    finally:
        for side in sides:
            side.worker.ask(do="release")
    word, why = series.verdict("slower", "faster", options.margin)
    ratio, low, high = series.found or (None, None, None)
    return {"verdict": word, "why": why, "ratio": ratio, "low": low, "high": high, "blocks": len(series.logs), "rejected": series.rejected,
            "compile": min(compiled[b]) / min(compiled[a]), "seconds": [min(s for m in made for s in m[x]) for x in "AB"]}


def line(cell):
    if cell["verdict"] == "failed":
        return f"{cell['name']:52}  FAILED: {cell['why']}"
    tried = cell["blocks"] + sum(cell["rejected"].values())
    return (f"{cell['name']:52}  {report.ratio(cell):>22}  {cell['blocks']:3} of {tried:3}  {cell['compile']:5.2f}   {cell['verdict']}"
            f"{': ' + cell['why'] if cell['why'] else ''}")


def compile_ratio(cells, margin):
    """Of all cells together: (B's compile time over A's, low, high, verdict), or None."""
    ratios = [cell["compile"] for cell in cells if "compile" in cell]
    if len(ratios) < 2:
        return None
    ratio, low, high = interval(np.log(ratios))
    word = "slower" if low > 1 + margin else "faster" if high < 1 - margin else "tie" if is_narrow(ratio, low, high, margin) else "unjudged"
    return ratio, low, high, word


def summary(cells, margin):
    """Lines under the table."""
    words = [cell["verdict"] for cell in cells]
    found = [f"{len(cells)} cells, by more than {margin:.0%}: " + ", ".join(f"{words.count(w)} {w}" for w in VERDICTS if words.count(w))]
    ratios = [cell["ratio"] for cell in cells if cell["verdict"] in ("slower", "faster", "tie")]
    if ratios:
        found.append(f"B / A over the judged cells: {math.exp(np.mean(np.log(ratios))):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}")
    together = compile_ratio(cells, margin)
    if together:
        found.append(f"compile B / A: {together[0]:.3f} [{together[1]:.3f}, {together[2]:.3f}]: {together[3]}")
    return found


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("a", help="the build folder to compare with")
    parser.add_argument("b", help="the build folder that must not be slower")
    parser.add_argument("--blocks", type=int, default=MOST, help=f"of a cell at most (default: {MOST})")
    parser.add_argument("--case", default="", help="only cells whose name holds this, or of this group; several with commas")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="cpu", help="default: cpu, processor time")
    parser.add_argument("--cores", default="", help="the first of these is used (default: of all that this process may use)")
    parser.add_argument("--each", type=float, default=0.02, help="seconds of runs in each turn of a build (default: 0.02)")
    parser.add_argument("--json", default="", help="also write the cells into this file")
    parser.add_argument("--margin", type=float, default=0.02, help="what counts as slower or faster (default: 0.02)")
    parser.add_argument("--moved", type=float, default=quiet.MOVED, help="the most that the FMA peak may move within a block (default: 0.03)")
    parser.add_argument("--quick", action="store_true", help="a few cells of each kind")
    parser.add_argument("--seconds", type=float, default=60, help="for the blocks of a cell at most (default: 60)")
    parser.add_argument("--target", default="host", help="for heedc")
    parser.add_argument("--within", type=float, default=0.01, help="half the width of an interval, of the ratio (default: 0.01)")
    return parser.parse_args()


def main():
    options = parse_arguments()
    found = chosen([word.strip() for word in options.case.split(",") if word.strip()], options.quick)
    if not found:
        fail(f"no case is called '{options.case}'")
    for build in (options.a, options.b):
        if not os.path.exists(os.path.join(build, "bin", "heedc")):
            fail(f"'{build}' is no build folder: it has no bin/heedc")
    try:
        cores = quiet.cores_of(options.cores)[:1]
    except ValueError as error:
        fail(f"--cores: {error}")
    made = {"began": now(), "margin": options.margin, "within": options.within, "moved": options.moved, "clock": options.clock, "core": cores[0],
            "compilers": {x: fingerprint(os.path.join(x, "bin", "heedc")) for x in (options.a, options.b)}, "cells": []}
    with tempfile.TemporaryDirectory() as folder:
        sides = [Side(options.a, "a", folder, cores, options.target), Side(options.b, "b", folder, cores, options.target)]
        for side in sides:
            os.makedirs(side.folder)
        machine = Machine(folder, cores, {"host": "native"}.get(options.target, options.target), options.clock)
        print(f"{'cell':52}  {'B / A':>22}      blocks  compile", flush=True)
        for number, case in enumerate(sorted(found, key=lambda case: case.rank)):
            try:
                cell = compare(case, sides, machine, cores, os.path.join(folder, f"case{number}"), options)
            except RuntimeError as error:
                cell = {"verdict": "failed", "why": str(error)}
            made["cells"].append({"name": case.name, "time": now(), **cell})
            print(line(made["cells"][-1]), flush=True)
            if options.json:
                with open(options.json, "w", encoding="utf-8") as file:  # as far as it came
                    json.dump({**made, "compile": compile_ratio(made["cells"], options.margin)}, file, indent=1)
                    file.write("\n")
        for part in (machine, *sides):
            part.close()
    print("\n".join(summary(made["cells"], options.margin)))
    words = {cell["verdict"] for cell in made["cells"]} | set((compile_ratio(made["cells"], options.margin) or ())[3:])
    sys.exit(1 if words & {"slower", "failed"} else 2 if "unjudged" in words else 0)


if __name__ == "__main__":
    main()
