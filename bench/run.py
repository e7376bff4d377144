"""Measures compiled models beside other systems and what this machine can do; writes a table, JSON, pictures and a report.

Every case: all systems get the same arrays, their outputs are compared, then they run in turn (A B A B ...), and each round
measures the machine's FMA peak too. Exit code 1: something failed or an output differs; 2: the peak varied so much that
nothing can be said.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

import report
from cases import HERE, chosen
from machine import Machine, cache_bytes, cpu_name

# Module of systems/ -> whether it lives in the bench environment.
PEERS = {"with_numpy": False, "pytorch": True, "onnx_runtime": True, "openvino": True, "ctranslate": True, "ggml": True}
STEADY = 0.05  # the most that the peak may vary


def fail(message):
    sys.exit(f"bench: error: {message}")


class Process:
    """A system in a process of its own (worker.py)."""

    def __init__(self, module, python, threads, folder):
        count = str(threads)
        settings = {f"{x}_NUM_THREADS": count for x in ("OMP", "MKL", "OPENBLAS", "NUMEXPR")}
        cache = os.path.join(os.path.expanduser("~"), ".cache", "heed-bench")
        self.environment = {**os.environ, **settings, "TORCHINDUCTOR_CACHE_DIR": os.path.join(cache, "inductor"),
                            "CUDA_VISIBLE_DEVICES": ""}
        self.log = open(os.path.join(folder, f"{module}.{count}.log"), "w", encoding="utf-8")
        self.module, self.command = module, [python, os.path.join(HERE, "worker.py"), module, count]
        self.start()

    def start(self):
        self.hello = None
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                        text=True, env=self.environment)

    def greet(self):
        """Name and version, or what is missing; known once the process has started."""
        if not self.hello:
            line = self.process.stdout.readline()
            self.hello = json.loads(line) if line else {"missing": "its process ended"}
        return self.hello

    def ask(self, **request):
        self.greet()
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except OSError:
            line = ""
        if line:
            return json.loads(line)
        code = self.process.wait()
        self.start()  # the next case shall not suffer
        self.greet()
        return {"error": f"its process ended with {code}"}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def write_inputs(case, folder):
    """The arrays as files; what a worker is told of the case."""
    os.makedirs(folder, exist_ok=True)
    inputs = case.make()
    for name, array in inputs.items():
        np.save(os.path.join(folder, name + ".npy"), array)
    weights = case.make_weights() if case.make_weights else None
    if isinstance(weights, dict):
        from safetensors.numpy import save_file
        save_file(weights, os.path.join(folder, "weights.safetensors"))
        weights = os.path.join(folder, "weights.safetensors")
    if "config" in case.params:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(case.params["config"], file)
    return {**case.describe(), "inputs": list(inputs), "weights_file": weights}


def compile_case(case, told, folder, options):
    """The shared library; seconds."""
    library, prefix = os.path.join(folder, "model.so"), "bench"
    command = [os.path.join(options.build, "bin", "heedc"), case.source, *case.options, f"--target={options.target}",
               f"--prefix={prefix}", "--emit=shared", "--no-cache", "-o", library]
    if told["weights_file"]:
        command += ["--weights", told["weights_file"]]
    if "config" in case.params:
        command += ["--model-dir", folder]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr.strip()}
    told.update(library=library, prefix=prefix)
    return {"seconds": time.perf_counter() - start}


def difference(mine, theirs):
    if mine.shape != theirs.shape:
        theirs = theirs.reshape(mine.shape) if mine.size == theirs.size else None
    # Python's max drops a NaN, and none is above a bound.
    if theirs is None or not (np.isfinite(theirs).all() and np.isfinite(mine).all()):
        return float("inf")
    # Blockwise: no third array of that size.
    top = max(float(np.abs(theirs).max()), 1e-30)
    return max(float(np.abs(a - b).max()) for a, b in zip(np.array_split(mine.ravel(), 16), np.array_split(theirs.ravel(), 16)) if a.size) / top


def prepare(case, told, folder, systems, options):
    """Rows of the variants whose outputs agree with Heed's; of each peer only its best one goes on."""
    rows, absent, mine = [], {}, None
    for system in systems:
        answer = system.ask(do="prepare", case=told, folder=folder)
        name = system.hello["name"]
        if "error" in answer:
            absent[name] = answer["error"]
            continue
        absent.update({f"{name}: {v}" if v != name else name: why for v, why in answer["absent"].items()})
        found = []
        for variant, made in answer["variants"].items():
            output = np.load(made["output"])
            os.unlink(made["output"])
            label = variant if variant == name else f"{name} {variant}"
            row = {"system": name, "variant": label, "prepare_seconds": made["prepare_seconds"], "seconds": []}
            if name == "heed":
                mine = output
            elif mine is not None:
                row["difference"] = difference(mine, output)
                if not row["difference"] <= case.tolerance:
                    absent[label] = f"its output differs from Heed's by {row['difference']:.1e}"
                    continue
            found.append((variant, row))
        if len(found) > 1:  # the fastest of three runs each
            trial = {v: min(system.ask(do="time", variant=v, seconds=0.02, least=3, cpu=options.clock == "cpu").get("seconds", [1e9])) for v, _ in found}
            found = [min(found, key=lambda pair: trial[pair[0]])]
        system.ask(do="release", keep=[v for v, _ in found])
        rows += [(system, variant, row) for variant, row in found]
    return rows, absent


def turns(rows, absent, memory, machine, options):
    """The rounds: seconds go into the rows; the limits of each round."""
    limits = []
    for _, _, row in rows:
        row["seconds"] = []
    for number in range(options.rounds):
        limits.append(machine.measure(memory or not machine.bandwidth[0]))
        for system, variant, row in rows if number % 2 == 0 else reversed(rows):
            answer = system.ask(do="time", variant=variant, seconds=options.seconds, least=1, cpu=options.clock == "cpu")
            if "error" in answer:
                absent[row["variant"]] = answer["error"]
            row["seconds"].append(answer.get("seconds", []))
    return limits


def measure(case, told, folder, systems, machine, options):
    """One case with one number of threads."""
    rows, absent = prepare(case, told, folder, systems, options)
    memory = case.group in ("rows", "decode") or case.flops < 50 * (case.reads + case.writes)
    for attempt in range(options.tries):
        limits = turns(rows, absent, memory, machine, options)
        if machine.steady([peak for peak, _, _ in limits], STEADY):
            break
    for system in systems:
        system.ask(do="release")
    result = {**case.describe(), "flops": case.flops, "reads": case.reads, "writes": case.writes, "gate": case.gate,
              "grows": case.grows, "rounded": case.rounded,
              "cached": case.reads + case.writes < cache_bytes(), "limits": limits, "systems": [row for _, _, row in rows if any(row["seconds"])],
              "absent": absent}
    # Where nobody agrees with Heed, it is Heed that is wrong.
    peers = [r for r in result["systems"] if r["system"] != "heed"]
    differing = [why for why in absent.values() if "differs from Heed's" in why]
    if not any(r["system"] == "heed" for r in result["systems"]):
        result["failed"] = absent.get("heed", "Heed gave no time")
    elif differing and not peers:
        result["failed"] = "no peer agrees with Heed: " + "; ".join(differing)
    return result


def start(options, threads):
    """The processes of one number of threads; names of systems -> version or why it is missing."""
    here, there = sys.executable, os.path.join(HERE, "..", ".venv-bench", "bin", "python")
    wanted = [] if options.peers == "none" else list(PEERS) if options.peers == "all" else options.peers.split(",")
    systems, known = [Process("heed", here, threads, options.out)], {}
    for module in wanted:
        if module not in PEERS:
            fail(f"--peers: expected none, all or some of {', '.join(PEERS)}; found '{module}'")
        if PEERS[module] and not os.path.exists(there):
            known[module] = "not installed: 'bench/setup' does it"
            continue
        systems.append(Process(module, there if PEERS[module] else here, threads, options.out))
    for system in list(systems):
        hello = system.greet()
        known[hello.get("name", system.module)] = hello.get("version", hello.get("missing"))
        if "missing" in hello:
            systems.remove(system)
            system.close()
    return systems, known


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="the build folder (default: build)")
    parser.add_argument("--case", default="", help="only cases whose name holds this, or of this group; several with commas")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall",
                        help="cpu: processor time, of one thread only; steadier on a machine that others use")
    parser.add_argument("--keep", action="store_true", help="keep what results.json holds of other cases, of an earlier run")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--out", default="", help="folder for results.json and pictures (default: BUILD/bench)")
    parser.add_argument("--peers", default="all", help=f"all, none, or some of {', '.join(PEERS)}")
    parser.add_argument("--quick", action="store_true", help="a few cases of each kind")
    parser.add_argument("--report", action="store_true", help="also write docs/performance.md from this run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.05, help="for each system in a round (default: 0.05)")
    parser.add_argument("--target", default="host", help="for heedc")
    parser.add_argument("--threads", default="1,all", help="numbers of threads, or 'all' (default: 1,all)")
    parser.add_argument("--tries", type=int, default=3, help="of a case, while the FMA peak is not steady (default: 3)")
    options = parser.parse_args()
    if options.clock == "cpu":
        options.threads = "1"
    options.out = options.out or os.path.join(options.build, "bench")
    return options


def earlier(options, found):
    """Results of cases that this run does not measure, and the minutes that they took."""
    path = os.path.join(options.out, "results.json")
    if not options.keep or not os.path.exists(path):
        return [], 0
    with open(path, encoding="utf-8") as file:
        run = json.load(file)
    return [result for result in run["cases"] if result["name"] not in {case.name for case in found}], run["minutes"]


def main():
    options = parse_arguments()
    words = [w.strip() for w in options.case.split(",") if w.strip()]
    found = chosen(words, options.quick)
    if not found:
        fail(f"no case is called '{options.case}'")
    if options.list:
        print("\n".join(f"{case.group:10} {case.name}" for case in found))
        return 0
    every = len(os.sched_getaffinity(0))
    counts = list(dict.fromkeys((t, every if t == "all" else int(t)) for t in options.threads.split(",")))
    if len(counts) > 1 and every == 1:
        counts = counts[:1]
    os.makedirs(options.out, exist_ok=True)
    (results, minutes), began = earlier(options, found), time.time()
    with tempfile.TemporaryDirectory() as folder:
        march = {"host": "native"}.get(options.target, options.target)
        groups = []
        for word, count in counts:
            systems, known = start(options, count)
            groups.append((word, count, systems, Machine(folder, count, march, options.clock)))
        if not groups[0][2] or groups[0][2][0].module != "heed":
            fail(f"heed: {known['heed']}")
        version = subprocess.run([os.path.join(options.build, "bin", "heedc"), "--version"], capture_output=True, text=True).stdout
        run = {"version": version.split()[-1] if version else "", "target": options.target, "rounds": options.rounds,
               "clock": options.clock, "date": time.strftime("%Y-%m-%d"), "whole": not words and not options.quick,
               "machine": {"cpu": cpu_name(), "threads": every}, "systems": known, "steady": STEADY, "cases": results}
        for case in found:
            place = os.path.join(folder, f"case{found.index(case)}")  # a library's path is never used again
            told = write_inputs(case, place)
            compiled = compile_case(case, told, place, options)
            for word, count, systems, machine in groups:
                if len(groups) > 1 and word not in case.threads:
                    continue
                if "error" in compiled:
                    result = {**case.describe(), "failed": compiled["error"], "systems": [], "absent": {}}
                else:
                    result = measure(case, told, place, systems, machine, options)
                    result["compile_seconds"] = compiled["seconds"]
                results.append({**result, "threads": count})
                print(report.line(results[-1]), file=sys.stderr, flush=True)
            shutil.rmtree(place)
            run["minutes"] = round(minutes + (time.time() - began) / 60, 1)
            with open(os.path.join(options.out, "results.json"), "w", encoding="utf-8") as file:  # as far as it came
                json.dump(run, file, indent=1)
                file.write("\n")
        for _, _, systems, machine in groups:
            machine.close()
            for system in systems:
                system.close()
    print(report.text(report.summary(run)))
    drawing = os.path.join(HERE, "..", ".venv-bench", "bin", "python")
    if options.peers != "none" and os.path.exists(drawing):
        subprocess.run([drawing, os.path.join(HERE, "pictures.py"), os.path.join(options.out, "results.json"), options.out])
    if options.report:
        report.write(run, os.path.join(HERE, "..", "docs"), options.out)
    if any("failed" in r for r in results):
        return 1
    return 0 if report.judged(report.summary(run)) else 2


if __name__ == "__main__":
    sys.exit(main())
