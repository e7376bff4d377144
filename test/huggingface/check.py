"""Compiles an architecture's test checkpoints and compares what they compute with transformers (expected/, which make.py writes)."""
import contextlib
import json
import os
import pathlib
import sys
import tempfile
import time

import numpy as np

os.environ["HEEDC"] = sys.argv[1]
import heed
import runs
import weights
from runs import expect, finish

HERE = pathlib.Path(__file__).parent
MOST = 5  # failures of a case, behind which it is left
TOLERANCE = 2e-5  # of the largest number of a result; float32 against float64


def near(found, wanted, what, tolerance=TOLERANCE, where=None):
    """Compares numbers; `where` says which (rows of padding are no results)."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape:
        return expect(False, f"{what}: shape {found.shape}, expected {wanted.shape}")
    off = np.abs(found.astype(np.float64) - wanted)
    if where is not None:
        off = off[where]
    limit = tolerance * np.abs(wanted).max()
    expect(bool((off <= limit).all()), f"{what}: off by {off.max(initial=0) if off.size else 0:.3g}, expected at most {limit:.3g} ({np.mean(~(off <= limit)):.0%} are)")


def calls_of(arrays):
    """{entry: (inputs, results)}, each a dict by name, of arrays with names like encode.in.ids."""
    calls = {}
    for key, array in arrays.items():
        entry, kind, name = key.split(".")
        calls.setdefault(entry, ({}, {}))[kind == "out"][name] = array
    return calls


def results_of(model, entry, inputs, state=None):
    """A call's results by their names."""
    found = model[entry](state=state, **inputs)
    names = [tensor.name for tensor in model._library.entries[entry][1]]
    return {names[0]: found.copy()} if len(names) == 1 else {name: array.copy() for name, array in zip(names, found)}


def compare_call(model, entry, inputs, wanted, what, tolerance, state=None):
    """One call of an entry. With `length` among the inputs, results over tokens are compared where a row has some."""
    found = results_of(model, entry, inputs, state)
    expect(set(found) >= set(wanted), f"{what}: results {list(found)}, expected {list(wanted)}")
    length = inputs.get("length")
    tokens = max((a.shape[1] for name, a in inputs.items() if a.ndim == 2 and name != "length"), default=0)
    for name in set(found) & set(wanted):
        rows = length is not None and wanted[name].ndim == 3 and wanted[name].shape[1] == tokens
        near(found[name], wanted[name], f"{what}, {name}", tolerance, np.arange(tokens) < length[:, None] if rows else None)


def refuses_lengths(model, entry, inputs, what, state=None):
    """A row's length that is none of 0 .. N is an error."""
    for wrong in (-1, 10**6) if "length" in inputs else ():
        lengths = inputs["length"].copy()
        lengths[-1] = wrong
        call = lambda: model[entry](**{**inputs, "length": lengths}, state=state)
        runs.fails(heed.RangeError, f" = {wrong} is out of range for ", call, f"{what}, length {wrong}")


def check_encoder(model, expected, what, tolerance):
    """Every entry as transformers ran it; then each row alone, without its padding. Like check_decoder it yields after each comparison."""
    for entry in expected:
        inputs, wanted = expected[entry]
        yield compare_call(model, entry, inputs, wanted, f"{what}, {entry}", tolerance)
        yield refuses_lengths(model, entry, inputs, f"{what}, {entry}")
        for b in range(len(inputs["length"])) if "length" in inputs and all(a.ndim <= 2 for a in inputs.values()) else ():
            n = inputs["length"][b]
            row = {name: a[b:b + 1] if a.ndim == 1 else a[b:b + 1, :n] for name, a in inputs.items()}
            alone = {name: a[b:b + 1, :n] if a.ndim == 3 else a[b:b + 1] for name, a in wanted.items()}
            yield compare_call(model, entry, row, alone, f"{what}, {entry}, row {b} alone", tolerance)


class Decoder:
    """A decoder's calls over one state, compared as they come."""

    def __init__(self, model, expected, what, tolerance, logits="logits"):
        inputs, results = expected["scores"]
        self.model, self.ids, self.wanted, self.what, self.tolerance = model, inputs["ids"], results[logits], what, tolerance
        self.batch, self.size = self.ids.shape
        dims = {extent for tensor in model._library.states for extent in tensor.extents}
        source = expected.get("encode", ({},))[0].get("source")
        given = {"B": self.batch, "C": self.size + 2, "M": 0 if source is None else source.shape[1]}
        self.state = model.state(**{dim: given[dim] for dim in dims if dim in given})
        if "encode" in expected:
            compare_call(model, "encode", *expected["encode"], f"{what}, encode", tolerance, state=self.state)
        self.seen = np.zeros(self.batch, np.int64)

    def call(self, entry, counts):
        """The next counts[b] tokens of each row; what stands behind them does not matter."""
        width = max(counts)
        ids = np.full((self.batch, width), 3, np.int32)
        for b, count in enumerate(counts):
            ids[b, :count] = self.ids[b, self.seen[b]:self.seen[b] + count]
        found = self.model[entry](ids=ids, count=np.array(counts, np.int32), state=self.state)
        for b, count in enumerate(counts):
            rows = self.wanted[b, self.seen[b]:self.seen[b] + count]
            what = f"{self.what}, {entry} of {counts}, row {b} at {self.seen[b]}"
            if count:
                near(found[b, :count] if entry == "scores" else found[b], rows if entry == "scores" else rows[-1], what, self.tolerance)
        self.seen += counts

    def whole(self, entry, chunk):
        """The whole batch in chunks."""
        while self.seen[0] < self.size:
            yield self.call(entry, [int(min(chunk, self.size - self.seen[0]))] * self.batch)
        lengths = self.state["len"].tolist() if "len" in self.state.names else self.seen.tolist()
        expect(lengths == [self.size] * self.batch, f"{self.what}: lengths {lengths}")


def check_decoder(model, expected, what, tolerance):
    """Scores in one call, in chunks of 7 and token by token; the last row alone; rows of a batch that go on by different numbers of tokens."""
    begin = lambda how, **more: Decoder(model, expected, f"{what}, {how}", tolerance, **more)
    results = expected["scores"][1]
    size = expected["scores"][0]["ids"].shape[1]
    for chunk, how in (size, "one call"), (7, "chunks of 7"), (1, "token by token"):
        logits = f"logits_{chunk}" if f"logits_{chunk}" in results else "logits"
        yield from begin(how, logits=logits).whole("scores", chunk)
        if chunk < size:
            yield from begin(how, logits=logits).whole("forward", chunk)
    yield begin("last row").call("forward", [size] * len(results["logits"]))
    if "logits_7" in results:
        return  # what a row is given depends on how the calls were cut
    for entry in "scores", "forward":
        mixed = begin("mixed rows")
        turn = 0
        while (mixed.seen < mixed.size).any():
            steps = [(5, 2), (0, 1), (1, 0), (7, 3), (1, 1), (2, 6)][turn % 6]
            counts = [int(min(steps[b % 2], mixed.size - mixed.seen[b])) for b in range(mixed.batch)]
            if any(counts):
                yield mixed.call(entry, counts)
            turn += 1


def check_encoder_decoder(model, expected, what, tolerance):
    """As a decoder; a second source begins a second target."""
    yield from check_decoder(model, expected, what, tolerance)
    again = Decoder(model, expected, f"{what}, a second source", tolerance)
    yield again.call("scores", [5] * again.batch)
    yield refuses_lengths(model, "encode", expected["encode"][0], what, again.state)
    results_of(model, "encode", expected["encode"][0], again.state)
    again.seen[:] = 0
    yield from again.whole("scores", again.size)


CHECKS = {"encoder": check_encoder, "decoder": check_decoder, "encoder-decoder": check_encoder_decoder}


def compiled(folder, case, config, backend):
    weights.write(folder, case, config)
    # By definition, code is used a few times and takes seconds to optimise.
    options = ["-O", "0"] if backend == "reference" else []
    return heed.compile(folder, backend=backend, options=options)


def check_case(architecture, name, backend):
    folder, what = HERE / "expected" / architecture / name, f"{architecture}/{name}"
    case, config = (json.loads((folder / file).read_text()) for file in ("case.json", "config.json"))
    with tempfile.TemporaryDirectory() as scratch:
        if "error" in case:
            try:
                compiled(scratch, case, config, backend)
            except heed.CompileError as error:
                return expect(case["error"] in str(error), f"{what}: expected {case['error']!r} in\n{error}")
            return expect(False, f"{what}: no error, expected {case['error']!r}")
        try:
            model = compiled(scratch, case, config, backend)
        except heed.Error as error:
            return expect(False, f"{what}: {error}")
        with contextlib.closing(model):
            before, calls = runs.failures, calls_of(np.load(folder / "expected.npz"))
            try:
                for step in CHECKS[case["kind"]](model, calls, what, case.get("tolerance", TOLERANCE)):
                    if runs.failures >= before + MOST:
                        return print(f"{what}: no more is compared")
            except heed.Error as error:
                expect(False, f"{what}: {error}")


def check(architecture):
    """All cases of an architecture, or those named behind the compiler; the first with optimised kernels, the others by definition, which takes a sixth of
    the time to compile. `--halide`: all optimised; `--times`: says how long each takes."""
    options = {word for word in sys.argv[2:] if word.startswith("--")}
    names = sorted((path.name for path in (HERE / "expected" / architecture).iterdir()), key=lambda name: (name != "default", name))
    expect(bool(names), f"{architecture}: no cases")
    wanted = [word for word in sys.argv[2:] if word not in options] or names
    for name in wanted:
        began = time.perf_counter()
        check_case(architecture, name, None if name == "default" or "--halide" in options else "reference")
        if "--times" in options:
            print(f"{architecture}/{name}: {time.perf_counter() - began:.1f} s", flush=True)
    finish()
