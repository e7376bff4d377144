# RUN: rm -rf %t && env PYTHONPATH=%heed_src/python:%heed_src/test/support:%heed_src/test/huggingface %python %s %heed_bin/heedc %t
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Checkpoints in bf16 and f16 compute what the same numbers in f32 do: as they are stored, and widened when they are read. In one file and in three.
Names of architectures behind the folder are tried instead of the few of the test."""
import contextlib
import json
import sys

import numpy as np

import heed
import weights
from check import CHECKS, HERE, TOLERANCE, calls_of, results_of
from runs import expect, finish, run

HEEDC, SCRATCH = sys.argv[1:3]
TYPES = {"bf16": 2, "f16": 3}  # and in how many files


def library(folder, *options):
    path = f"{folder}{''.join(options)}.so"
    done = run(HEEDC, folder, "--emit=shared", "-o", path, *options)
    expect(done.returncode == 0, f"{folder} {options}: {done.stderr}")
    return path


def computed(model, calls):
    """The calls again, with the model's own results; an encoder's before its decoder's."""
    extents = {extent for tensor in model._library.states for extent in tensor.extents}
    tokens, source = (max((inputs[name].shape[1] for inputs, _ in calls.values() if name in inputs), default=0) for name in ("ids", "source"))
    given = {"B": len(next(iter(calls.values()))[0].get("ids", ())), "C": tokens, "M": source}
    if "encode" in calls and "scores" in calls:
        given["B"] = len(calls["scores"][0]["ids"])
    state = model.state(**{dim: extent for dim, extent in given.items() if dim in extents}) if model._library.states else None
    found = {}
    for entry in sorted(calls):
        inputs = calls[entry][0]
        if entry == "scores":
            inputs = {**inputs, "count": np.full(given["B"], tokens, np.int32)}
        found[entry] = calls[entry][0], results_of(model, entry, inputs, state)
    return found


def compare(path, folder, kind, expected, what):
    with contextlib.closing(heed.load(path, weights=folder)) as model:
        for _ in CHECKS[kind](model, expected, what, TOLERANCE):
            pass


def check(architecture):
    stored = HERE / "expected" / architecture / "default"
    case, config = (json.loads((stored / file).read_text()) for file in ("case.json", "config.json"))
    calls, wide = calls_of(np.load(stored / "expected.npz")), None
    for kind, shards in TYPES.items():
        folder, rounded = f"{SCRATCH}/{architecture}-{kind}", f"{SCRATCH}/{architecture}-{kind}-as-f32"
        weights.write(folder, {**case, "shards": shards, "stored": kind}, config)
        weights.write(rounded, {**case, "rounded": kind}, config)
        wide = wide or library(rounded)
        with contextlib.closing(heed.load(wide, weights=rounded)) as model:
            expected = computed(model, calls)
        compare(library(folder), folder, case["kind"], expected, f"{architecture} stored in {kind}")
        compare(wide, folder, case["kind"], expected, f"{architecture} widened from {kind}")


for architecture in sys.argv[3:] or ["llama", "bert", "t5", "mamba2", "vit"]:
    check(architecture)
finish()
