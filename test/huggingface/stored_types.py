# RUN: rm -rf %t && env PYTHONPATH=%heed_src/python:%heed_src/test/support:%heed_src/test/huggingface %python %s %heed_bin/heedc %t
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""Checkpoints in bf16 and f16 compute what the same numbers in f32 do: as they are stored, and widened when they are read. In one file and in three.
With --products=bf16 one of them rounds what meets its weights.
Names of architectures behind the folder are tried instead of the few of the test."""
import contextlib
import json
import sys

import numpy as np

import heed
import weights
from check import CHECKS, HERE, TOLERANCE, calls_of, results_of
from heed import abi
from runs import expect, finish, run

HEEDC, SCRATCH = sys.argv[1:3]
TYPES = {"bf16": 2, "f16": 3}  # and in how many files


def library(folder, *options):
    path = f"{folder}{''.join(options)}.so"
    done = run(HEEDC, folder, "--emit=shared", "-o", path, *options)
    expect(done.returncode == 0, f"{folder} {options}: {done.stderr}")
    return path


def computed(model, calls):
    """The calls again, with the model's own results; what is encoded comes before what is scored."""
    shapes = {name: array.shape for inputs, _ in calls.values() for name, array in inputs.items()}
    dims, state, found = {extent for tensor in model._library.states for extent in tensor.extents}, None, {}
    if dims:
        rows, tokens = shapes["ids"]
        extents = {"B": rows, "C": tokens, "M": shapes.get("source", (0, 0))[1]}
        state = model.state(**{dim: extents[dim] for dim in dims if dim in extents})
    for entry in sorted(calls):
        inputs = calls[entry][0]
        more = {"count": np.full(rows, tokens, np.int32)} if entry == "scores" else {}
        found[entry] = inputs, results_of(model, entry, {**inputs, **more}, state)
    return found


def compare(path, folder, case, expected, kind, what, tolerance=TOLERANCE):
    """A library that holds its parameters as `kind`, on a folder's weights."""
    with contextlib.closing(heed.load(path, weights=folder)) as model:
        c, desc = model._library.c, model._library.desc
        kinds = {abi.TYPE_NAMES[c.heed_param(desc, k).contents.type] for k in range(c.heed_num_params(desc))}
        expect(kinds == {kind}, f"{what}: parameters are {kinds}")
        for _ in CHECKS[case["kind"]](model, expected, what, tolerance):
            pass


def products(folder, case, calls, exact):
    """--products=bf16: kernels and the reference backend compute the same, which is not what products in f32 are. A number that is computed in another order
    may be rounded to the next bf16."""
    reference = library(folder, "--products=bf16", "--backend=reference")
    with contextlib.closing(heed.load(reference, weights=folder)) as model:
        expected = computed(model, calls)
    compare(library(folder, "--products=bf16"), folder, case, expected, "bf16", f"{folder}, products in bf16", 2e-3)
    for entry, (_, results) in expected.items():
        for name, array in results.items():
            off = np.abs(array - exact[entry][1][name]).max() / np.abs(array).max()
            expect(1e-4 < off < 5e-2, f"{folder} {entry} {name}: bf16 and f32 are {off} apart")


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
        if (architecture, kind) == ("llama", "bf16"):
            products(folder, case, calls, expected)
        compare(library(folder), folder, case, expected, kind, f"{architecture} stored in {kind}")
        compare(wide, folder, case, expected, "f32", f"{architecture} widened from {kind}")


for architecture in sys.argv[3:] or ["llama", "bert", "t5", "mamba2", "vit"]:
    check(architecture)
finish()
