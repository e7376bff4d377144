"""A shape of generate_cases.py with one number of threads: two cells, prefill and step, and what a whole process takes.

Beside Heed only one peer is loaded at a time (weights of several would not fit): each is tried, and raced unless it is clearly slower than one before.
"""
import json
import os
import subprocess
import sys
import threading
import time

import numpy as np

import blocks
import checkpoints
import generate_cases
import measure
from process import HERE, THERE, Worker
from machine import cache_bytes

# Modules systems/generate_*.py -> names, in the order of trying.
PEERS = {"llama": "llama.cpp", "pytorch": "pytorch", "ctranslate": "ctranslate2"}
#: Ways of a whole process of ours -> names.
OURS = {"heed": "heed", "packed": "heed, packed"}
NOT_THERE = {"onnxruntime": "needs an exporter of models with caches (optimum, onnxruntime-genai), which is not in this environment"}
CHECKED = 16  # tokens of each row that a peer chooses by itself and that Heed's logits judge
#: How far a peer's choice may lie below Heed's largest logit, of its size: rounding of products of a type, not another model (a wrong token lies at 1).
GAP = {"f32": 1e-3, "bf16": 5e-2, "f16": 1e-2}
SLOW, SLOW_BLOCKS = 2.0, 4  # where a turn takes so many seconds, so few blocks when time is over
LONG = 20.0  # seconds: a process that takes longer is not started a second time


def worker(module, cores, options):
    python = sys.executable if module == "heed" else THERE
    return Worker(module, cores, options.out, python, script="generate_worker.py")


def compiled(shape, options, known={}):
    """What heedc makes of the checkpoint, once a run: paths, and its seconds, cold, also of two layers."""
    key = shape.key, shape.type, shape.products
    if key in known:
        return known[key]
    folder = os.path.join(options.out, "generate", "-".join([shape.key, shape.type] + ["products"] * (shape.products != "f32")).replace("/", "-"))
    os.makedirs(folder, exist_ok=True)
    checkpoint = checkpoints.make(shape.key, shape.type)
    alike = [] if shape.type == "f32" else [f"--state-type={shape.type}"]  # keys and values as the weights
    alike += [f"--products={shape.products}"] * (shape.products != "f32")
    heedc, base = os.path.join(options.build, "bin", "heedc"), shape.key.partition("/")[0]
    found = {"folder": checkpoint, "prefix": "bench", "library": os.path.join(folder, "model.so"), "program": os.path.join(folder, "model")}
    for name, source, more in (("two_layers", checkpoints.make(f"{base}/2", shape.type, drawn=False), ["--emit=shared", "--no-cache"]),
                               ("library", checkpoint, ["--emit=shared", "--no-cache"]), ("program", checkpoint, [])):
        out = found.get(name, os.path.join(folder, "two-layers.so"))
        start, before = time.perf_counter(), os.times()
        done = subprocess.run([heedc, source, f"--target={options.target}", "--prefix=bench", *alike, *more, "-o", out], capture_output=True, text=True)
        found[name + "_seconds"], after = time.perf_counter() - start, os.times()
        found[name + "_processor"] = after[2] + after[3] - before[2] - before[3]
        if done.returncode:
            found["error"] = done.stderr.strip()
            break
    known[key] = found
    return found


# --- whole processes -------------------------------------------------------------------------------------------------


class Memory(threading.Thread):
    """What a process holds at most: anonymous pages and pages of files, in kB, looked at every 5 ms."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.path, self.most = f"/proc/{process.pid}/status", {}
        self.start()

    def run(self):
        while True:
            try:
                with open(self.path, encoding="utf-8") as file:
                    lines = [line.split() for line in file]
            except OSError:
                return
            now = {line[0][:-1]: int(line[1]) for line in lines if line[0] in ("VmHWM:", "RssAnon:", "RssFile:")}
            if not now:  # it has ended
                return
            self.most = {name: max(self.most.get(name, 0), value) for name, value in now.items()}
            time.sleep(0.005)


def process(command, cores):
    """(seconds from its start to its end, Memory.most); a RuntimeError if it fails."""
    threads = {f"{x}_NUM_THREADS": str(len(cores)) for x in ("OMP", "MKL", "OPENBLAS")}
    environment = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "CUDA_VISIBLE_DEVICES": "", **threads}
    start = time.perf_counter()
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                               preexec_fn=lambda: os.sched_setaffinity(0, cores))
    memory = Memory(running)
    _, errors = running.communicate()
    seconds = time.perf_counter() - start
    memory.join()
    if running.returncode:
        raise RuntimeError(f"its process ended with {running.returncode}: {errors.decode(errors='replace').strip()[-200:]}")
    return seconds, memory.most


def whole(module, case, cores, folder):
    """`first`: least seconds of a process that makes one token of each row and ends; `all` and `memory` of one that makes all."""
    found = {}
    for key, new, times in (("first", 1, 2), ("all", case["new"], 1)):
        told = {**case, "new": new, "check": new}
        seconds = []
        for _ in range(times):
            if seconds and seconds[0] > LONG:
                break
            taken, memory = process(command(module, told, cores, folder), cores)
            seconds.append(taken)
        found[key] = min(seconds)
    return {**found, "memory": memory}


def packed(case):
    """The file of packed weights, which lies beside the program."""
    path = case["program"] + ".packed"
    if not os.path.exists(path):
        done = subprocess.run([case["program"], "--weights", case["folder"], "--save-packed", path], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
    return path


def command(module, case, cores, folder):
    threads = len(cores)
    ids = os.path.join(folder, "ids.npy" if module != "llama" else "ids.raw")
    if module in OURS:
        weights = ["--packed", packed(case)] if module == "packed" else ["--weights", case["folder"]]
        return [case["program"], *weights, "--ids", ids, "--generate", str(case["new"]), "--threads", str(threads)]
    if module == "llama":
        program, model = os.path.join(HERE, "..", ".venv-bench", "llama", "llama-generate"), os.path.join(case["folder"], "model.gguf")
        return [program, model, ids, str(case["B"]), str(case["N"]), str(case["new"]), str(int(case["type"] != "f32")), str(threads)]
    told = os.path.join(folder, "case.json")
    with open(told, "w", encoding="utf-8") as file:
        json.dump(case, file)
    return [THERE, os.path.join(HERE, "generate_worker.py"), "once", module, str(threads), told, ids]


# --- races -----------------------------------------------------------------------------------------------------------


class Way(measure.Candidate):
    """A way of a system to generate, open in its worker, and one of the two things that are timed."""

    def __init__(self, made_by, way, what, made, gap):
        super().__init__(made_by, way, made)
        self.what, self.difference = what, gap

    def time(self, seconds, least, options):
        answer = self.worker.ask(do="time", variant=self.what, seconds=seconds, least=least, cpu=options.clock == "cpu")
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["seconds"], answer["switches"], answer["spent"]


class Cells:
    """What results.json will say of both cells of a shape."""

    def __init__(self, shape, threads, made):
        self.shape, self.threads, self.best, self.results, self.known = shape, threads, {}, {}, {}
        for what in ("prefill", "step"):
            flops, reads, writes = shape.cost(what)
            self.results[what] = {**shape.describe(what), "flops": flops, "reads": reads, "writes": writes, "gate": 0, "grows": "", "rounded": "",
                                  "cached": reads < cache_bytes(), "memory": True, "tolerance": GAP[shape.type], "systems": [], "absent": {},
                                  "compile_seconds": made["library_seconds"],
                                  "compile_processor": [made["library_processor"], made["two_layers_processor"]], "held": shape.held(),
                                  "processes": {}, "threads": threads}

    def absent(self, name, why):
        for result in self.results.values():
            result["absent"][name] = why

    def failed(self, why):
        for result in self.results.values():
            result["failed"] = why

    def race(self, mine, other, machine, cores, options):
        """Both cells of Heed against this way: a trial, and blocks unless another way was clearly faster. `other` may be None."""
        for what, result in self.results.items():
            a, b = mine[what], other and other[what]
            if b and b.variant == "compiled" and what == "prefill":
                continue  # it is the eager one
            if b:
                taken, _, spent = b.time(options.each, 2, options)
                b.trial.append(min(taken))
                least = self.best[what] = min(self.best.get(what, b.trial[0]), b.trial[0])
                if b.trial[0] > measure.CONTENDS * least:
                    result["systems"].append(b.row(self.threads))
                    continue
            slow = max(a.time(0, 1, options)[2], spent if b else 0) > SLOW
            enough = SLOW_BLOCKS if slow else blocks.ENOUGH
            raced = measure.race(result, a, [b] if b else [], machine, cores, options, enough)
            if b in raced:
                made = raced[b][1]
                (result["systems"].append(b.row(self.threads, made)) if b else result["systems"].insert(0, a.row(self.threads, made)))

    def finish(self):
        """The results: of each system its fastest way, Heed first; versions of systems."""
        for result in self.results.values():
            heed = [r for r in result["systems"] if r["system"] == "heed"]
            best = {}
            for row in result["systems"]:
                if row["system"] != "heed" and (row["system"] not in best or row["trial"][0] < best[row["system"]]["trial"][0]):
                    best[row["system"]] = row
            result["systems"] = heed + list(best.values())
        return list(self.results.values()), self.known


def opened(system, way, case, ids, heed=None):
    """{what: Way} of a way whose tokens are Heed's, or a RuntimeError."""
    answer = system.ask(do="open", case=case, way=way, ids=ids)
    if "error" in answer:
        raise RuntimeError(answer["error"])
    gap = (heed or system).ask(do="gap", tokens=answer["tokens"])
    if "error" in gap:
        raise RuntimeError(f"Heed cannot judge its tokens: {gap['error']}")
    if not gap["gap"] <= GAP[case["type"]]:
        raise RuntimeError(f"its tokens are not Heed's: a choice lies {gap['gap']:.1e} below the largest logit, {GAP[case['type']]:.0e} is allowed")
    return {what: Way(system, way, what, answer, gap["gap"]) for what in ("prefill", "step")}


def measure_peer(module, cells, mine, case, folder, group, options):
    name, system = PEERS[module], worker(module, group.cores, options)
    try:
        hello = system.greet()
        cells.known[name] = hello.get("version", hello.get("missing"))
        if "missing" in hello:
            return cells.absent(name, hello["missing"])
        answer = system.ask(do="ways", case=case)
        for way in answer.get("ways", []):
            label = way if way == name else f"{name} {way}"
            try:
                cells.race(mine, opened(system, way, case, os.path.join(folder, "ids.npy"), mine["step"].worker), group.machine, group.cores, options)
            except RuntimeError as error:
                cells.absent(label, str(error).split("\n")[0][:200])
        if "error" in answer:
            cells.absent(name, answer["error"])
    finally:
        system.close()


def measure_processes(cells, case, folder, group, modules):
    for module in modules:
        name = PEERS.get(module) or OURS[module]
        if module in OURS or any(r["system"] == name for result in cells.results.values() for r in result["systems"]):
            try:
                found = whole(module, case, group.cores, folder)
            except RuntimeError as error:
                found = {"failed": str(error)}
            if module == "packed" and os.path.exists(case["program"] + ".packed"):
                os.remove(case["program"] + ".packed")  # gigabytes
            for result in cells.results.values():
                result["processes"][name] = found


def measure_systems(cells, case, folder, group, options, modules):
    """Heed with each peer in turn, alone where none could be raced; then whole processes."""
    heed = worker("heed", group.cores, options)
    try:
        mine = opened(heed, "heed", case, os.path.join(folder, "ids.npy"))
        for module in modules:
            measure_peer(module, cells, mine, case, folder, group, options)
        if any(not any(r["blocks"] for r in result["systems"]) for result in cells.results.values()):
            cells.race(mine, None, group.machine, group.cores, options)
        else:
            for what, result in cells.results.items():
                result["systems"].insert(0, mine[what].row(cells.threads))
    finally:
        heed.close()
    measure_processes(cells, case, folder, group, [*OURS, *modules])


def measure_shape(shape, folder, group, options, modules):
    """(the results of both cells, versions of systems); `group` has the machine's probe and the cores, `modules` are peers."""
    os.makedirs(folder, exist_ok=True)
    made = compiled(shape, options)
    ids = shape.ids()
    np.save(os.path.join(folder, "ids.npy"), ids)
    ids.tofile(os.path.join(folder, "ids.raw"))
    cells = Cells(shape, len(group.cores), {**dict.fromkeys(("library_seconds", "library_processor", "two_layers_processor"), 0), **made})
    for name, why in NOT_THERE.items() if modules else ():
        cells.absent(name, why)
    try:
        if "error" in made:
            raise RuntimeError(made["error"])
        measure_systems(cells, {**made, **shape.describe("")["params"], "check": CHECKED}, folder, group, options, modules)
    except RuntimeError as error:
        cells.failed(f"Heed: {error}")
    return cells.finish()


def shapes(words):
    """Those of `generate`, or whose name, or a cell's, holds one of the words; none if there is no word: they take hours."""
    return [s for s in generate_cases.shapes() if any(w == s.group or w.lower() in s.name.lower() or w.lower() in s.cells[0] + s.cells[1] for w in words)]
