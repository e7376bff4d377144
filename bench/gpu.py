"""Measures compiled models on a GPU: cases of gpu_cases.py beside what the device can do; a table, and JSON.

Without the blocks and peers of run.py: a device is not shared as a processor's cores are, and there is nothing to race. The models are compiled first, into a folder,
which a machine with a GPU runs (--compiled) with python3, NumPy and the driver alone. Each case is right before it is timed, in a process that begins anew after a case
that fails or hangs. Exit code 1: something failed or is wrong.
"""
import argparse
import ctypes as C
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time
import traceback

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "python"))
import goals
import gpu_cases
import gpu_devices
import reference
from gpu_devices import There
from heed import abi
from heed.arrays import View
from heed.state import CallOptions
from results import commit, fingerprint, now

PREFIX, SAMPLE = "bench", 16  # rows that are compared with float64


# --- compiling ---------------------------------------------------------------------------------------------------------


def write_header(path, named):
    """A .safetensors file of these f32 tensors, which takes no room on the disk: heedc reads their shapes alone."""
    at, head = 0, {}
    for name, shape in named.items():
        size = 4 * int(np.prod(shape))
        head[name], at = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}, at + size
    text = json.dumps(head).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + at)


def compile_case(case, shapes, library, options):
    """Nothing, or what heedc said."""
    with tempfile.TemporaryDirectory() as folder:
        command = [os.path.join(options.build, "bin", "heedc"), case.source, *case.options, f"--target={options.device}", f"--prefix={PREFIX}",
                   "--emit=shared", "-o", library]
        if options.device == "cuda" and options.arch:
            command.append(f"--cuda-arch={options.arch}")
        if shapes:
            write_header(os.path.join(folder, "weights.safetensors"), shapes)
            command += ["--weights", os.path.join(folder, "weights.safetensors")]
        if "config" in case.params:
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
                json.dump(case.params["config"], file)
            command += ["--model-dir", folder]
        done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else None


def compile_all(found, options):
    """The libraries, and compiled.json, which says of each case which is its own; or what heedc said against it."""
    os.makedirs(options.folder, exist_ok=True)
    libraries, said, made = {}, {}, {}
    for case in found:
        shapes = {name: list(a.shape) for name, a in case.make_weights().items()} if case.make_weights else {}
        told = json.dumps([case.source, case.options, case.params.get("config"), shapes])  # what is the same for several cases
        if told not in libraries:
            libraries[told] = re.sub(r"[^A-Za-z0-9]+", "-", case.name) + ".so"
            print(f"bench: compiling {libraries[told]}", file=sys.stderr, flush=True)
            said[told] = compile_case(case, shapes, os.path.join(options.folder, libraries[told]), options)
        made[case.name] = {"failed": said[told]} if said[told] else {"library": libraries[told]}
    sizes = [os.path.getsize(os.path.join(options.folder, libraries[told])) for told in libraries if not said[told]]
    print(f"bench: {len(sizes)} libraries in {options.folder}, {sum(sizes) / 2**20:.1f} MiB", file=sys.stderr)
    with open(os.path.join(options.folder, "compiled.json"), "w", encoding="utf-8") as file:
        json.dump({"commit": commit(os.path.join(HERE, "..")), "compiler": fingerprint(os.path.join(options.build, "bin", "heedc")), "target": options.device,
                   "arch": options.arch if options.device == "cuda" else "", "cases": made}, file, indent=1)


def read_compiled(options):
    path = os.path.join(options.folder, "compiled.json")
    if not os.path.exists(path):
        sys.exit(f"bench: error: '{options.folder}' has no compiled.json: --compile-only --folder makes it")
    with open(path, encoding="utf-8") as file:
        return json.load(file)


# --- one model on the device -------------------------------------------------------------------------------------------


class Handle:
    """An open model, and its arrays on the device."""

    def __init__(self, library, device, weights, inputs, profile=False):
        self.c, self.device, self.held, self.numbers = C.CDLL(os.path.abspath(library)), device, [], []
        if missing := abi.bind(self.c):
            raise RuntimeError(f"{library} has no {missing}")
        self.desc = C.c_void_p(C.addressof(C.c_char.in_dll(self.c, PREFIX + "_model")))
        self.views = {name: View(a.ctypes.data, abi.F32, a.shape, None, a) for name, a in weights.items()}
        self.find = abi.FindWeight(self.give)
        options = abi.Options(findWeight=self.find, profile=int(profile), target=device.target.encode(), context=device.context)
        self.handle, began = C.c_void_p(), time.perf_counter()
        self.check(self.c.heed_open_version(abi.ABI_VERSION, self.desc, C.byref(options), C.byref(self.handle)))
        self.opened = time.perf_counter() - began
        self.call = CallOptions(stream=device.stream)
        self.place(inputs)

    def give(self, _, name, buffer):
        view = self.views.get(name.decode())
        if view is None:
            return 0
        view.fill(buffer.contents)
        return 1

    def check(self, status):
        if status:
            raise RuntimeError(self.c.heed_last_error(self.handle).decode() or "no memory")

    def place(self, inputs):
        """Numbers of the call stay on the host."""
        entry = self.c.heed_entry_signature(self.desc, 0).contents
        self.inputs, self.outputs = (abi.Buffer * entry.numInputs)(), (abi.Buffer * entry.numOutputs)()
        for k in range(entry.numInputs):
            info = entry.inputs[k].contents
            array = inputs.get(info.name.decode())  # None: a number with a default
            if info.isScalar:
                self.numbers.append(array)
                self.inputs[k] = abi.Buffer(data=None if array is None else array.ctypes.data, type=info.type)
            else:
                self.held.append(There.of(self.device, array))
                self.inputs[k] = self.held[-1].buffer
        for buffer in self.outputs:
            buffer.size = C.sizeof(abi.Buffer)
        self.check(self.c.heed_output_shapes_in(self.handle, None, self.inputs, len(self.inputs), self.outputs, len(self.outputs), None))
        self.results = []
        for k, buffer in enumerate(self.outputs):
            shape = tuple(buffer.shape[:buffer.rank])
            self.results.append(There(self.device, buffer.type, shape, 4 * int(np.prod(shape))))
            self.outputs[k] = self.results[-1].buffer

    def run(self):
        """Waits for the end."""
        self.check(self.c.heed_run(self.handle, None, self.inputs, len(self.inputs), self.outputs, len(self.outputs), C.byref(self.call)))

    def kernels(self):
        """(name, calls, seconds) of each since the last time; by the device's clock where its driver has one."""
        count = self.c.heed_profile(self.handle, None, 0)
        found = (abi.KernelProfile * count)()
        if count:
            found[0].size = C.sizeof(abi.KernelProfile)
        self.c.heed_profile(self.handle, found, count)
        self.c.heed_profile_reset(self.handle)
        return [(k.kernel.decode(), k.calls, k.seconds) for k in found if k.calls]

    def close(self):
        self.c.heed_close(self.handle)
        for there in (*self.held, *self.results):
            there.free()


# --- one case ----------------------------------------------------------------------------------------------------------


def rows_of(case, inputs):
    """A few rows of the result, the first and the last among them; None: all."""
    if case.kind not in (*reference.ROWWISE, "attention"):
        return None
    n = case.params["N"] if case.kind == "attention" else len(next(iter(inputs.values())))
    return np.unique([0, n - 1, *np.random.default_rng(n).integers(0, n, SAMPLE - 2)]) if n > SAMPLE else None


def compare(case, given, inputs, weights):
    """How far the sample is from float64, and how far it may be."""
    rows = rows_of(case, inputs)
    right, largest = reference.answer(case.kind, case.params, inputs, weights, rows)
    if not np.isfinite(given).all():
        return float("inf"), reference.tolerance(largest)
    part = given if rows is None else given[:, :, rows] if case.kind == "attention" else given[rows]
    return reference.difference(right, np.ascontiguousarray(part)), reference.tolerance(largest)


def repeated(run, seconds, least=5):
    """What `run` gives, until `seconds` have passed and at least so many runs are there."""
    found, end = [], time.perf_counter() + seconds
    while len(found) < least or time.perf_counter() < end and len(found) < 1000:
        found.append(run())
    return found


def wall(run):
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def both(times):
    return {"best": float(np.min(times)), "median": float(np.median(times))}


def measure(case, library, device, seconds):
    """A result without limits: seconds of kernels and of calls, how far its numbers are off."""
    inputs, weights = case.make(), case.make_weights() if case.make_weights else {}
    handle = Handle(library, device, weights, inputs)
    first = wall(handle.run)
    difference, tolerance = compare(case, handle.results[0].get(), inputs, weights)
    result = {**case.describe(), "difference": difference, "tolerance": tolerance, "flops": case.flops,
              "reads": case.reads or float(sum(a.nbytes for a in (*inputs.values(), *weights.values()))), "writes": case.writes}
    if not difference <= tolerance:
        handle.close()
        return {**result, "failed": f"off by {difference:.2g} of the largest element, {tolerance:.2g} is allowed"}
    calls = both(repeated(lambda: wall(handle.run), seconds))
    opened = handle.opened + first
    handle.close()
    profiled = Handle(library, device, weights, inputs, profile=True)
    profiled.run()
    profiled.kernels()

    def kernels():
        device.delay()
        profiled.run()
        return profiled.kernels()

    runs = repeated(kernels, seconds)
    result |= {"call": calls, "opened": opened, "kernels": both([sum(k[2] for k in run) for run in runs]), "profile": min(runs, key=lambda run: sum(k[2] for k in run))}
    profiled.close()
    if case.kind == "launch":
        result["of"] = launch(case, library, device, inputs, result, seconds)
    elif case.kind == "open":
        result["of"] = both([opening(library, device, weights, inputs, calls["best"]) for _ in range(5)])
    return result


def launch(case, library, device, inputs, result, seconds):
    """Of a long chain and a short one: what a further kernel takes, by the host's clock."""
    few, many = case.params["turns"]
    short = Handle(library, device, {}, {**inputs, "L": np.array(few, np.int32)})
    short.run()
    base = both(repeated(lambda: wall(short.run), seconds))
    short.close()
    more = sum(k[1] for k in result["profile"]) * (1 - few / many)
    return {name: (result["call"][name] - base[name]) / more for name in base}


def opening(library, device, weights, inputs, call):
    """Opening and the first call, but for what a later call takes; the driver has the kernels from before."""
    handle = Handle(library, device, weights, inputs)
    spent = handle.opened + wall(handle.run) - call
    handle.close()
    return spent


# --- all of them -------------------------------------------------------------------------------------------------------


def child(found, libraries, options):
    """Measures cases in turn and says a line of each. After one that the driver refuses something it ends: of a context that was lost all that follows would fail."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    device = gpu_devices.DEVICES[options.device](options.copied)
    print(json.dumps({"name": device.name, "context_seconds": device.began, "limits": gpu_devices.limits(device)}), file=answers, flush=True)
    for case in found:
        try:
            print(json.dumps(measure(case, libraries[case.name], device, options.seconds)), file=answers, flush=True)
        except Exception as error:
            traceback.print_exc()
            said = f"{type(error).__name__}: {error}".split("\n")[0]
            print(json.dumps({**case.describe(), "failed": said, "ends": True}), file=answers, flush=True)
            os._exit(1)
    device.close()


class Lines:
    """What a process says, a line at a time."""

    def __init__(self, command, limit):
        self.process, self.limit, self.late = subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0), limit, False

    def next(self):
        """What a line says; None at the end, or if there is none within the limit."""
        self.late = not select.select([self.process.stdout], [], [], self.limit)[0]
        line = b"" if self.late else self.process.stdout.readline()
        return json.loads(line) if line.endswith(b"\n") else None

    def close(self):
        """Why it said no more."""
        if self.late:
            self.process.kill()
        code = self.process.wait()
        return f"it took longer than {self.limit:g} s" if self.late else f"its process ended with exit code {code}"


def measure_all(found, options, began, done):
    """Each case in a child, after one that ends it in another; `began` gets what the child says of the device, `done` each result."""
    left = list(found)
    while left:
        lines = Lines([sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--child", json.dumps([case.name for case in left])], options.limit)
        hello, result = lines.next(), None
        if hello:
            began(hello)
            while left and (result := lines.next()):
                left.pop(0)
                done(result)
                if "ends" in result:
                    break
        why = lines.close()
        if not hello:
            sys.exit(f"bench: error: there is no device: {why}")
        if not result:
            done({**left.pop(0).describe(), "failed": why})


def finished(result, limits):
    """With its speed, its share of the limit and its goal."""
    if "failed" in result:
        return result
    goal, most = goals.goal(result)[0], goals.GPU_SECONDS.get(result["kind"])
    moved, seconds = result["reads"] + result["writes"], result["kernels"]["best"]
    peak, bandwidth = limits["flops"], limits["bandwidth"]
    computes = result["flops"] * bandwidth > moved * peak if peak and bandwidth else result["flops"] > 16 * moved
    amount, most_of = (result["flops"], peak) if computes else (moved, bandwidth)
    speed = amount / seconds if seconds > 0 else 0.0
    return {**result, "goal": goal, "goal_seconds": most, "bound": "flops" if computes else "bytes", "speed": speed, "share": speed / most_of if most_of else None}


def row(result):
    """Cells of the table."""
    name = result["name"]
    if "failed" in result:
        return [name, "failed: " + result["failed"], "", "", "", "", "", ""]
    off = f"{result['difference']:.1e}"
    if "of" in result:  # a time, not a share
        one, most = result["of"], result["goal_seconds"]
        unit, scale = ("us", 1e6) if most < 1e-3 else ("ms", 1e3)
        goal = f"<= {scale * most:g} {unit}" + ("" if one["best"] <= most else " (!)")
        return [name, f"{scale * one['best']:.2f} {unit}", f"{scale * one['median']:.2f} {unit}", "", "", "", goal, off]
    unit, scale = ("GFLOP/s", 1e-9) if result["bound"] == "flops" else ("GB/s", 1e-9)
    share, goal = result["share"], result["goal"]
    reached = "" if goal is None else f"{goal:.2f}" + ("" if share is None or share >= goal else " (!)")
    return [name, f"{1e3 * result['kernels']['best']:.4f}", f"{1e3 * result['kernels']['median']:.4f}", f"{1e3 * result['call']['best']:.4f}",
            f"{scale * result['speed']:.1f} {unit}", "-" if share is None else f"{share:.2f}", reached or "-", off]


COLUMNS = ["case", "kernels ms", "median", "call ms", "speed", "of limit", "goal", "off by"]


def table(results):
    lines = [COLUMNS, *map(row, results)]
    widths = [max(len(line[k]) for line in lines if not line[1].startswith("failed")) for k in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", default="", help="machine code for these, such as sm_90, beside PTX (heedc's --cuda-arch)")
    parser.add_argument("--build", default="build", help="the build folder (default: build)")
    parser.add_argument("--case", default="", help="only cases whose name holds one of these, with commas (default, and 'gpu': all)")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    parser.add_argument("--compile-only", action="store_true", help="compile the cases, and stop")
    parser.add_argument("--compiled", action="store_true", help="take what is in the folder, without heedc")
    parser.add_argument("--device", choices=tuple(gpu_devices.DEVICES), default="cuda", help="how it is reached (default: cuda)")
    parser.add_argument("--folder", default="", help="of compiled cases (default: BUILD/bench/gpu-DEVICE)")
    parser.add_argument("--limit", type=float, default=120, help="seconds that a case may take (default: 120)")
    parser.add_argument("--list", action="store_true", help="name the cases, and stop")
    parser.add_argument("--out", default="", help="the JSON file (default: BUILD/bench/gpu.json)")
    parser.add_argument("--seconds", type=float, default=0.5, help="of calls of a case, and as much of its kernels (default: 0.5)")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes: whether everything runs and is right")
    options = parser.parse_args()
    options.folder = options.folder or os.path.join(options.build, "bench", f"gpu-{options.device}")
    options.out = options.out or os.path.join(options.build, "bench", "gpu.json")
    options.copied = 1 << 20 if options.tiny else 512 << 20
    return options


def chosen(options):
    found = list(gpu_cases.cases_of(gpu_cases.TINY if options.tiny else gpu_cases.FULL))
    if options.child:
        names = json.loads(options.child)
        return [case for case in found if case.name in names]
    words = [w.strip().lower() for w in options.case.split(",") if w.strip()]
    return [case for case in found if not words or "gpu" in words or any(w in case.name.lower() for w in words)]


def run(found, compiled, options):
    """Measures what was compiled, and writes the file after each case; the results."""
    made = {"began": now(), "tiny": options.tiny, **{key: value for key, value in compiled.items() if key != "cases"}, "cases": []}
    ready = [case for case in found if "library" in compiled["cases"].get(case.name, {})]

    def began(hello):
        if "limits" not in made:
            made.update(hello)
            print(f"bench: {hello['name']}: {hello['limits']}", file=sys.stderr)

    def done(result):
        made["cases"].append(finished(result, made.get("limits")))
        print("bench: " + "  ".join(row(made["cases"][-1])), file=sys.stderr, flush=True)
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump({**made, "ended": now()}, file, indent=1)

    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    for case in found:
        if case not in ready:
            done({**case.describe(), "failed": compiled["cases"].get(case.name, {}).get("failed", "it was not compiled")})
    measure_all(ready, options, began, done)
    return made


def main():
    options = parse_arguments()
    found = chosen(options)
    if options.child:
        return child(found, {name: os.path.join(options.folder, of["library"]) for name, of in read_compiled(options)["cases"].items() if "library" in of}, options)
    if not found:
        sys.exit(f"bench: error: no case of a GPU is called '{options.case}'")
    if options.list:
        return print("\n".join(case.name for case in found))
    if not options.compiled:
        compile_all(found, options)
    compiled = read_compiled(options)
    if options.compile_only:
        failed = {name: of["failed"] for name, of in compiled["cases"].items() if "failed" in of}
        print("\n".join(f"bench: {name}: {said}" for name, said in failed.items()), end="", file=sys.stderr)
        return 1 if failed else 0
    made = run(found, compiled, options)
    if "limits" in made:
        limits = made["limits"]
        print(f"{made['name']}: copies at {1e-9 * limits['bandwidth']:.0f} GB/s; f32 peak {1e-12 * limits['flops']:.1f} TFLOP/s ({limits['flops_from']}); "
              f"a context took {1e3 * made['context_seconds']:.0f} ms")
    print(table(made["cases"]))
    return 1 if any("failed" in result for result in made["cases"]) else 0


if __name__ == "__main__":
    sys.exit(main())
