"""Measures compiled models beside other systems and what this machine can do; writes a table, JSON, pictures and a report.

Each cell (a case, a number of threads): all systems get the same arrays, their outputs are compared with float64, the fastest run in
blocks with Heed until the interval of the ratio is narrow. Exit code 1: something failed or an output is wrong; 2: a cell is unjudged.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

import generate
import measure
import page
import quiet
import report
from cases import HERE, chosen
from compiled import compile_case, expected, write_inputs
from estimate import MOST
from machine import Machine, cpu_name
from process import THERE, Worker
from results import Results, commit, earlier, fingerprint, now

# Module of systems/ -> whether it lives in the bench environment.
PEERS = {"with_numpy": False, "pytorch": True, "onnx_runtime": True, "openvino": True, "ctranslate": True, "ggml": True}


def fail(message):
    sys.exit(f"bench: error: {message}")


def wanted_peers(options, known):
    """Names of `known` that --peers asks for."""
    named = [] if options.peers == "none" else [*PEERS, *generate.PEERS] if options.peers == "all" else options.peers.split(",")
    for name in named:
        if name not in PEERS and name not in generate.PEERS:
            fail(f"--peers: expected none, all or some of {', '.join(dict.fromkeys([*PEERS, *generate.PEERS]))}; found '{name}'")
    return [name for name in dict.fromkeys(named) if name in known]


def start(options, cores):
    """The workers on these cores, Heed's first; names of systems -> version or why it is missing."""
    systems, known = [Worker("heed", cores, options.out)], {}
    if options.prototypes:
        systems.append(Worker("prototype", cores, options.out, HEED_PROTOTYPES=os.path.abspath(options.prototypes)))
    for module in wanted_peers(options, PEERS):
        if PEERS[module] and not os.path.exists(THERE):
            known[module] = "not installed: 'bench/setup' does it"
            continue
        systems.append(Worker(module, cores, options.out, THERE if PEERS[module] else sys.executable))
    for system in list(systems):
        hello = system.greet()
        known[hello.get("name", system.module)] = hello.get("version", hello.get("missing"))
        if "missing" in hello:
            systems.remove(system)
            system.close()
    return systems, known


class Threads:
    """What measures cells with one number of threads."""

    def __init__(self, word, cores, folder, options, workers=True):
        """`workers`: whether cases will be measured whose systems all stay loaded."""
        self.word, self.cores, self.systems, self.known = word, cores, [], {}
        if workers:
            self.systems, self.known = start(options, cores)
            if not self.systems or self.systems[0].module != "heed":
                fail(f"heed: {self.known['heed']}")
        self.machine = Machine(folder, cores, {"host": "native"}.get(options.target, options.target), options.clock)

    def close(self):
        for part in (self.machine, *self.systems):
            part.close()


def fewer_threads(groups, group):
    """Module -> its workers on some of this group's cores."""
    found = {}
    for other in groups:
        if len(other.cores) < len(group.cores):
            for worker in other.systems[1:]:
                found.setdefault(worker.module, []).append(worker)
    return found


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="the build folder (default: build)")
    parser.add_argument("--blocks", type=int, default=MOST, help=f"of a pair at most, rejected ones among them (default: {MOST})")
    parser.add_argument("--case", default="", help="only cases whose name holds this, or of this group; several with commas")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall",
                        help="cpu: processor time, of one thread only; steadier on a machine that others use")
    parser.add_argument("--cores", default="", help="these alone, such as 0,2-3 (default: all that this process may use)")
    parser.add_argument("--each", type=float, default=0.005, help="seconds of runs in each turn of a system (default: 0.005)")
    parser.add_argument("--keep", action="store_true",
                        help="go on with the run in results.json, of the same commit: what is not there yet, and what --case names again")
    parser.add_argument("--list", action="store_true", help="name the cases in the order in which they are measured, and stop")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no further case after so many; --keep goes on later")
    parser.add_argument("--out", default="", help="folder for results.json and pictures (default: BUILD/bench)")
    parser.add_argument("--peers", default="all", help=f"all, none, or some of {', '.join(dict.fromkeys([*PEERS, *generate.PEERS]))}")
    parser.add_argument("--prototypes", default="", help="a folder of Halide prototypes (attn.cpp, decode.cpp), raced as one more system")
    parser.add_argument("--moved", type=float, default=quiet.MOVED, help="the most that the FMA peak may move within a block (default: 0.03)")
    parser.add_argument("--quick", action="store_true", help="a few cases of each kind")
    parser.add_argument("--report", action="store_true", help="also write docs/performance.md, or {zoo,recurrence,generate}-performance.md, from this run")
    parser.add_argument("--seconds", type=float, default=30, help="for the race of a cell at most (default: 30)")
    parser.add_argument("--target", default="host", help="for heedc")
    parser.add_argument("--threads", default="1,all", help="numbers of threads, or 'all' (default: 1,all)")
    parser.add_argument("--unjudged", action="store_true", help="with --keep: measure cells again that are unjudged or failed")
    parser.add_argument("--within", type=float, default=0.015, help="half the width of an interval, of the ratio (default: 0.015)")
    options = parser.parse_args()
    if options.clock == "cpu":
        options.threads = "1"
    options.out = options.out or os.path.join(options.build, "bench")
    return options


def new_run(options, cores):
    heedc = os.path.join(options.build, "bin", "heedc")
    if not os.path.exists(heedc):
        fail(f"'{options.build}' is no build folder: it has no bin/heedc")
    version = subprocess.run([heedc, "--version"], capture_output=True, text=True).stdout
    return {"version": version.split()[-1] if version else "", "commit": commit(os.path.join(HERE, "..")), "compiler": fingerprint(heedc),
            "target": options.target, "clock": options.clock, "within": options.within, "moved": options.moved, "began": now(), "minutes": 0,
            "machine": {"cpu": cpu_name(), "cores": cores}, "systems": {}, "cases": []}


def numbers_of_threads(options, cores):
    """(word, number) of each kind of cell; a number of cores that is no number of the table's serves peers on fewer threads alone."""
    counts = {}
    for word in options.threads.split(","):
        if not (word == "all" or word.isdigit() and 0 < int(word) <= len(cores)):
            fail(f"--threads: expected 'all' or a number up to {len(cores)}; found '{word}'")
        counts.setdefault(len(cores) if word == "all" else int(word), word)
    return [(word, count) for count, word in counts.items()]


def wanted(case, group, groups, results, options):
    """Whether this cell is to be measured."""
    if len(groups) > 1 and group.word not in case.threads:
        return False
    there = results.done().get((case.cells[-1], len(group.cores)))
    return not there or bool(options.case) or options.unjudged and report.cell(there, options.within).get("verdict", "failed") in ("failed", "unjudged")


def add(results, result, options):
    results.add(result)
    print(report.line(report.cell(results.done()[result["name"], result["threads"]], options.within)), file=sys.stderr, flush=True)


def measure_case(case, groups, results, folder, options):
    cells = [group for group in groups if wanted(case, group, groups, results, options)]
    if not cells:
        return
    if case.kind == "generate":
        for group in cells:
            made, known = generate.measure_shape(case, folder, group, options, wanted_peers(options, generate.PEERS))
            results.run["systems"].update(known)
            for result in made:
                add(results, result, options)
        shutil.rmtree(folder)
        return
    told, inputs, weights = write_inputs(case, folder)
    compiled = compile_case(case, told, folder, options.build, options.target)
    right = None if "error" in compiled else expected(case, inputs, weights)
    for group in cells:
        if right is None:
            result = {**case.describe(), "failed": compiled["error"], "systems": [], "absent": {}}
        else:
            alone = results.done().get((case.name, 1), {"systems": []})["systems"]
            known = {row["system"]: min(row["trial"]) for row in alone if row["trial"]}
            result = measure.measure(case, told, folder, right, group.systems, fewer_threads(groups, group), group.machine, group.cores,
                                     known, options)
            result["compile_seconds"] = compiled["seconds"]
        add(results, {**result, "threads": len(group.cores)}, options)
    shutil.rmtree(folder)


def main():
    options = parse_arguments()
    words = [w.strip() for w in options.case.split(",") if w.strip()]
    found = chosen(words, options.quick) + generate.shapes(words)
    if not found:
        fail(f"no case is called '{options.case}'")
    every = chosen([], False) + generate.shapes(["generate"])
    left_out = [case.name for case in every if case.group in {c.group for c in found} and case.name not in {c.name for c in found}]
    if options.report and left_out and not options.keep:
        fail(f"--report writes pages of whole groups: expected --case to name all of them, or --keep; found {len(left_out)} left out, '{left_out[0]}' first")
    found.sort(key=lambda case: case.rank)
    if options.list:
        print("\n".join(f"{case.group:10} {case.name}" for case in found))
        return 0
    try:
        cores = quiet.cores_of(options.cores)
    except ValueError as error:
        fail(f"--cores: {error}")
    counts = numbers_of_threads(options, cores)
    run, path = new_run(options, cores), os.path.join(options.out, "results.json")
    os.makedirs(options.out, exist_ok=True)
    if options.keep:
        try:
            run = earlier(path, run) or run
        except ValueError as error:
            fail(error)
    results = Results(path, run, [name for case in every for name in case.cells])
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        groups = [Threads(word, cores[:count], folder, options, any(case.kind != "generate" for case in found)) for word, count in counts]
        for group in groups:
            run["systems"].update(group.known)
        for number, case in enumerate(found):
            if time.monotonic() > end:
                print(f"bench: {options.minutes:g} minutes are over, {len(found) - number} cases are left: --keep goes on", file=sys.stderr)
                break
            measure_case(case, groups, results, os.path.join(folder, f"case{number}"), options)  # a library's path is never used again
        for group in groups:
            group.close()
    made = report.summary(run)
    print(report.text(made))
    if options.peers != "none" and os.path.exists(THERE):
        subprocess.run([THERE, os.path.join(HERE, "pictures.py"), path, options.out])
    if options.report:
        page.write(run, os.path.join(HERE, "..", "docs"), options.out)
    if any("failed" in c for c in made["cells"]):
        return 1
    return 2 if any(c["verdict"] == "unjudged" for c in made["cells"]) else 0


if __name__ == "__main__":
    sys.exit(main())
