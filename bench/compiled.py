"""A case on disk: its arrays, its shared library, and what it gives in float64."""
import json
import os
import subprocess
import time

import numpy as np

import reference


def write_inputs(case, folder):
    """The arrays as files, and what a worker is told of the case; (that, inputs, weights)."""
    os.makedirs(folder, exist_ok=True)
    inputs = case.make()
    for name, array in inputs.items():
        np.save(os.path.join(folder, name + ".npy"), array)
    weights = path = case.make_weights() if case.make_weights else None
    if isinstance(weights, dict):
        from safetensors.numpy import save_file
        path = os.path.join(folder, "weights.safetensors")
        save_file(weights, path)
    elif weights:
        from safetensors.numpy import load_file
        weights = load_file(weights)
    if "config" in case.params:
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(case.params["config"], file)
    if not case.reads:
        case.reads = float(sum(a.nbytes for a in (*inputs.values(), *(weights or {}).values())))
    return {**case.describe(), "inputs": list(inputs), "weights_file": path}, inputs, weights or {}


def expected(case, inputs, weights):
    """(what the case gives in float64, how far an output may be from it)."""
    output, largest = reference.answer(case.kind, case.params, inputs, weights)
    case.writes = case.writes or 4.0 * sum(a.size for a in (output if isinstance(output, tuple) else (output,)))
    return output, reference.tolerance(largest)


def compile_case(case, told, folder, build, target):
    """The shared library; seconds of heedc, cold, by the clock and of the processor."""
    library, prefix = os.path.join(folder, "model.so"), "bench"
    command = [os.path.join(build, "bin", "heedc"), case.source, *case.options, f"--target={target}",
               f"--prefix={prefix}", "--emit=shared", "--no-cache", "-o", library]
    if told["weights_file"]:
        command += ["--weights", told["weights_file"]]
    if "config" in case.params:
        command += ["--model-dir", folder]
    start, before = time.perf_counter(), os.times()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr.strip()}
    told.update(library=library, prefix=prefix)
    after = os.times()
    return {"seconds": time.perf_counter() - start, "cpu": after[2] + after[3] - before[2] - before[3]}
