"""Measures compiled models against what this machine can do, and writes a table and a JSON file.

Every round measures the machine's FMA peak and read bandwidth and each case once, so that a machine whose speed drifts (or
that others use too) changes both sides alike; medians over the rounds are shown.
"""
import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

from cases import HERE, cases, prepare


def output(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(str(c) for c in command)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


class Machine:
    """The limits, measured by machine.c."""

    def __init__(self, folder, threads):
        self.program, self.threads = os.path.join(folder, "machine"), threads
        output(os.environ.get("CC", "cc"), "-O3", "-march=native", "-ffp-contract=fast", os.path.join(HERE, "machine.c"), "-o",
               self.program, "-lpthread")

    def measure(self):
        gflops, gbytes = output(self.program, self.threads).split()
        return float(gflops), float(gbytes)


class Heed:
    """One case as a program of its own."""

    name = "heed"

    def __init__(self, case, folder, options):
        self.program = os.path.join(folder, "program")
        arguments, known = prepare(case, folder)
        self.arguments = arguments + ["--threads", str(options.threads), f"--bench={options.runs}"]
        start = time.perf_counter()
        output(os.path.join(options.build, "bin", "heedc"), case.model, *known, f"--target={options.target}", "-o",
               self.program)
        self.compile_seconds = time.perf_counter() - start

    def measure(self):
        """Seconds of the best of some runs."""
        return 1e-3 * float(re.search(r"best ([\d.]+) ms", output(self.program, *self.arguments))[1])


# Other systems join here: a class with a name, made from a case, that measures. Each is run in every round.
SYSTEMS = [Heed]


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return re.search(r"model name\s*: (.*)", file.read())[1]
    except (OSError, TypeError):
        return platform.machine()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="the build folder (default: build)")
    parser.add_argument("--filter", default="", help="only cases whose name holds this")
    parser.add_argument("--json", default="bench.json", help="where the numbers go (default: bench.json)")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: does it work at all?")
    parser.add_argument("--rounds", type=int, help="default: 5")
    parser.add_argument("--runs", type=int, help="of each case in a round, the best counts (default: 5)")
    parser.add_argument("--target", default="host", help="for heedc")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: all")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.runs = options.runs or (2 if options.quick else 5)
    return options


def main():
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        machine, rows = Machine(folder, options.threads), []
        for case in cases(options.quick):
            if options.filter in case.name:
                for system in SYSTEMS:
                    place = os.path.join(folder, str(len(rows)))
                    rows.append((case, system.name, system(case, place, options), []))
        if not rows:
            sys.exit(f"no case is called '{options.filter}'")
        limits = []
        for number in range(options.rounds):
            limits.append(machine.measure())
            for case, _, system, seconds in rows:
                seconds.append(system.measure())
            print(f"round {number + 1} of {options.rounds}: {limits[-1][0]:.0f} GFLOP/s, {limits[-1][1]:.1f} GB/s",
                  file=sys.stderr)

    peak, bandwidth = (statistics.median(column) for column in zip(*limits))
    version = output(os.path.join(options.build, "bin", "heedc"), "--version").split()[-1]
    result = {"version": version, "target": options.target, "rounds": options.rounds, "runs": options.runs,
              "machine": {"cpu": cpu_name(), "threads": options.threads, "fma_gflops": peak, "read_gbytes": bandwidth},
              "cases": []}
    print(f"{cpu_name()}, {options.threads} threads: {peak:.0f} GFLOP/s f32, {bandwidth:.1f} GB/s read\n")
    print(f"{'case':42} {'system':8} {'ms':>9} {'GFLOP/s':>9} {'of peak':>8} {'compile s':>10}")
    for case, name, system, seconds in rows:
        # The share of each round is that of its own peak.
        share = statistics.median(case.flops * 1e-9 / s / limit[0] for s, limit in zip(seconds, limits))
        middle = statistics.median(seconds)
        row = {"case": case.name, "system": name, "seconds": seconds, "flops": case.flops,
               "gflops": case.flops * 1e-9 / middle, "share": share, "compile_seconds": system.compile_seconds}
        result["cases"].append(row)
        print(f"{case.name:42} {name:8} {1e3 * middle:9.3f} {row['gflops']:9.1f} {share:8.2f} {row['compile_seconds']:10.2f}")
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
