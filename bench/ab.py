"""Is one build faster than another? Runs both on the suite's cells, in turn, and gives the ratio of their times with its 95 % interval.

One thread, processor time, pairs A B, B A, A B, ... on the same inputs; arrays and libraries are made anew every few pairs,
because where they lie is part of the noise. Of a cell pairs are run until the interval is within --within, or --seconds are
spent, which is then said. The ratio is that of B's time to A's: above 1 B is slower. Exit code 1: something failed, the two
builds give different outputs, or B is slower by more than --slower with confidence.
"""
import argparse
import math
import os
import statistics
import sys
import tempfile
import time
import types

import numpy as np

import run
from cases import chosen

LEAST = 10  # pairs, before an interval is believed
FRESH = 8  # pairs, before arrays and libraries are made anew


def trimmed(values):
    """The mean without the lowest and highest fifth along the last axis: another program's turn is no property of a build."""
    values = np.sort(values, axis=-1)
    cut = values.shape[-1] // 5
    return values[..., cut:values.shape[-1] - cut].mean(axis=-1)


def interval(logs, level=0.95, samples=2000):
    """(ratio, low, high) of paired runs from the logarithms of their ratios: bootstrap of the trimmed mean."""
    logs = np.asarray(logs, float)
    if not np.isfinite(logs).all():
        raise ValueError("a ratio is not finite")
    drawn = np.random.default_rng(len(logs)).integers(0, len(logs), (samples, len(logs)))
    low, high = np.quantile(trimmed(logs[drawn]), [(1 - level) / 2, (1 + level) / 2])
    return tuple(math.exp(x) for x in (trimmed(logs), low, high))


def until_certain(pair, within, more):
    """Runs `pair` (seconds of A, of B) until the interval is within a share of the ratio, as long as `more()`.

    (ratio, low, high, pairs, whether the interval is that narrow)."""
    logs = []
    while True:
        a, b = pair(len(logs))
        logs.append(math.log(b / a))
        if len(logs) < LEAST:
            if more():
                continue
            return (*interval(logs), len(logs), False)
        ratio, low, high = interval(logs)
        narrow = high <= ratio * (1 + within) and low >= ratio * (1 - within)
        if narrow or not more():
            return ratio, low, high, len(logs), narrow


def verdict(low, high, narrow, slower):
    """What a cell's interval says of B."""
    if low > 1 + slower:
        return "SLOWER"
    if not narrow:
        return "limit reached, undecided" if high > 1 + slower else "limit reached, not slower"
    return "faster" if high < 1 else "same" if low <= 1 else "slower, but by less than asked"


class Side:
    """One build's library of a case, in a process of its own."""

    def __init__(self, build, name, folder, options):
        self.build, self.name, self.folder = build, name, os.path.join(folder, name)
        os.makedirs(self.folder, exist_ok=True)
        self.process = run.Process("heed", sys.executable, 1, self.folder)
        self.process.greet()
        self.target = options.target

    def compile(self, case, told, folder):
        self.told, self.inputs = dict(told), folder
        library = os.path.join(self.folder, os.path.basename(folder))
        os.makedirs(library)
        if "config" in case.params:
            os.symlink(os.path.join(folder, "config.json"), os.path.join(library, "config.json"))
        made = run.compile_case(case, self.told, library, types.SimpleNamespace(build=self.build, target=self.target))
        if "error" in made:
            raise RuntimeError(f"{self.name}: {made['error']}")
        return made["seconds"]

    def ask(self, **request):
        answer = self.process.ask(**request)
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer

    def prepare(self):
        """The output."""
        self.ask(do="release")
        answer = self.ask(do="prepare", case=self.told, folder=self.inputs)
        if answer["absent"]:
            raise RuntimeError(f"{self.name}: {answer['absent']}")
        path = answer["variants"]["heed"]["output"]
        output = np.load(path)
        os.unlink(path)
        return output

    def seconds(self, seconds):
        return statistics.median(self.ask(do="time", variant="heed", seconds=seconds, least=3, cpu=True)["seconds"])


def compare(case, sides, folder, options):
    """until_certain's answer, and seconds that each build's heedc took."""
    told = run.write_inputs(case, folder)
    compiled = [side.compile(case, told, folder) for side in sides]
    end = time.monotonic() + options.seconds

    def pair(number):
        if number % FRESH == 0:
            a, b = (side.prepare() for side in sides)
            apart = run.difference(b, a)
            if not apart <= case.tolerance:
                raise RuntimeError(f"the outputs differ by {apart:.2e}")
        found = {side.name: side.seconds(options.each) for side in (sides if number % 2 == 0 else sides[::-1])}
        return found["a"], found["b"]

    try:
        return until_certain(pair, options.within, lambda: time.monotonic() < end), compiled
    finally:
        for side in sides:
            side.process.ask(do="release")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("a", help="the build folder to compare with")
    parser.add_argument("b", help="the build folder that must not be slower")
    parser.add_argument("--case", default="", help="only cells whose name holds this, or of this group; several with commas")
    parser.add_argument("--quick", action="store_true", help="a few cells of each kind")
    parser.add_argument("--within", type=float, default=0.01, help="half the width of an interval, of the ratio (default: 0.01)")
    parser.add_argument("--slower", type=float, default=0.02, help="what counts as slower (default: 0.02)")
    parser.add_argument("--seconds", type=float, default=60, help="for a cell at most (default: 60)")
    parser.add_argument("--each", type=float, default=0.05, help="seconds of one build in a pair (default: 0.05)")
    parser.add_argument("--target", default="host", help="for heedc")
    return parser.parse_args()


def main():
    options = parse_arguments()
    found = chosen([word.strip() for word in options.case.split(",") if word.strip()], options.quick)
    if not found:
        run.fail(f"no case is called '{options.case}'")
    for build in (options.a, options.b):
        if not os.path.exists(os.path.join(build, "bin", "heedc")):
            run.fail(f"'{build}' is no build folder: it has no bin/heedc")
    bad = undecided = 0
    with tempfile.TemporaryDirectory() as folder:
        sides = [Side(options.a, "a", folder, options), Side(options.b, "b", folder, options)]
        print(f"{'cell':52}  B / A   95 % interval   pairs  compile B / A", flush=True)
        for number, case in enumerate(found):
            try:
                (ratio, low, high, pairs, narrow), compiled = compare(case, sides, os.path.join(folder, f"case{number}"), options)
            except RuntimeError as error:
                bad += 1
                print(f"{case.name:52}  FAILED: {error}", flush=True)
                continue
            says = verdict(low, high, narrow, options.slower)
            bad += says == "SLOWER"
            undecided += "undecided" in says
            print(f"{case.name:52}  {ratio:5.3f}   {low:5.3f} .. {high:5.3f}  {pairs:5}  {compiled[1] / compiled[0]:5.2f}   {says}", flush=True)
        for side in sides:
            side.process.close()
    print(f"{len(found)} cells: {bad} slower by more than {options.slower:.0%} or failed, {undecided} undecided")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
