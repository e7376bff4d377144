"""One model against the mutations that are still alive: which of them does the generator's oracle see?

A mutated tool writes the same IR, or the same library, as the plain one where its fault changes nothing: then no number can differ, and
nothing is run.
"""
import functools
import os
import pathlib
import re
import tempfile
from contextlib import contextmanager

from oracles import Failure, cases, check_backend, write_source
from passes import check_after
from session import isolated
from sites import PARTS, PROOF_OFF
from tools import run_tool, tool
from tools import run_tool, tool

# Up to where tensors are computed, or are rewritten: behind that, what a fault in there changes is seen by the reference.
LAST = {"rewrites": "attn-reorder-products", "kernels": "attn-verify-kernels"}


# Narrow vectors and few registers: small sizes are beyond a tile, and kernels compile faster.
TARGET = ["--target=x86-64-v2"]


@contextmanager
def environment(**values):
    before = {k: os.environ.get(k) for k in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for k, v in before.items():
            os.environ.pop(k) if v is None else os.environ.__setitem__(k, v)


@functools.cache
def pipeline(last):
    """The passes up to `last`, as heed-opt takes them."""
    text, _ = run_tool([tool("heed-opt"), "--heed-kernels", "--dump-pass-pipeline", os.devnull])
    text = re.sub(r"\s+(?![^{}]*\})", "", text[text.index("builtin.module("):])
    end = re.search(rf"\b{last}\b(\{{[^}}]*\}})?\)?", text).end()
    text = text[:end]
    return text + ")" * (text.count("(") - text.count(")"))


class Subject:
    """A drawn model in a folder of its own, with what the plain tools make of it."""

    def __init__(self, model, tuples, seed, folder, base):
        self.model, self.folder, self.base = model, folder, base
        try:
            self.known = list(cases(model, tuples, seed))
        except Exception:  # a fault of the generator tells nothing of the compiler
            self.known = []
        self.source = write_source(model, folder)
        self.plain, self.quiet = {}, {}

    def attn(self):
        """The front end's IR, in a file."""
        file = pathlib.Path(self.folder) / "attn.mlir"
        if not file.exists():
            text, code = run_tool([tool("heedc"), self.source, "--emit=attn", "-o", file])
            if code:
                raise Failure("refused", text.strip())
        return file

    def trace(self, oracle):
        """What the oracle would run, as text; a Failure if the compiler fails."""
        output = pathlib.Path(self.folder) / f"{oracle}.mlir"
        if oracle in LAST:
            command = [tool("heed-opt"), self.attn(), f"--pass-pipeline={pipeline(LAST[oracle])}", "--mlir-disable-threading"]
        else:
            command = [tool("heedc"), self.source, "--emit=halide" if oracle == "halide" else "--emit=llvm", *TARGET]
        text, code = run_tool(command + ["-o", output])
        if code:
            raise Failure("refused", text.strip())
        return output.read_text()

    def run(self, oracle, text):
        if oracle in LAST:
            check_after(text, self.folder, self.model, self.known)
        else:
            check_backend(self.source, self.folder, "halide", self.model, self.known, TARGET)

    def verdict(self, oracle, mutate, plain=None):
        """None where nothing changes, "" where it does and the oracle sees nothing, else what it sees."""
        def look():
            with environment(HEED_MUTATE=mutate):
                try:
                    text = self.trace(oracle)
                    if plain is not None and text == plain:
                        return {"failure": None, "same": True}
                    self.run(oracle, text)
                except Failure as e:
                    return {"failure": (e.kind, e.text, None)}
            return {"failure": None}
        out = isolated(look)
        if out["failure"]:
            return " ".join(f"{out['failure'][0]}: {out['failure'][1]}".split())
        return None if out.get("same") else ""

    def plain_trace(self, oracle):
        """The plain tools' text, and the mutations that they asked for on the way."""
        if oracle not in self.plain:
            reached = pathlib.Path(self.folder) / "reached"
            reached.write_text("")
            with environment(HEED_MUTATE=self.base, HEED_MUTATIONS_REACHED=str(reached)):
                text = self.trace(oracle)
            self.plain[oracle] = (text, set(reached.read_text().split()))
        return self.plain[oracle]

    def is_quiet(self, oracle):
        """Whether the oracle finds nothing without a fault: what it finds there is no find."""
        if oracle not in self.quiet:
            self.quiet[oracle] = self.verdict(oracle, self.base) == ""
        return self.quiet[oracle]


def hunt(model, tuples, seed, alive, proof=False):
    """{name: what was seen} for those of `alive` that some oracle sees. With the proofs on if `proof`, else with none."""
    seen, base = {}, "" if proof else PROOF_OFF
    with tempfile.TemporaryDirectory() as folder:
        subject = Subject(model, tuples, seed, folder, base)
        if not subject.known:
            return seen
        for name in alive:
            oracle = PARTS[name.split(".")[0]][1]
            try:
                plain, reached = subject.plain_trace(oracle)
            except Failure:
                continue
            if name not in reached:
                continue
            found = subject.verdict(oracle, f"{name},{base}", plain)
            if found and subject.is_quiet(oracle):
                seen[name] = f"{oracle}: {found}"
    return seen


def refusal(model, tuples, seed, name):
    """What the proof makes of a fault in a model in which the generator sees it: "refused", with the numbers right; else how they are wrong."""
    with tempfile.TemporaryDirectory() as folder:
        subject = Subject(model, tuples, seed, folder, "")
        oracle = PARTS[name.split(".")[0]][1]
        found = subject.verdict(oracle, name)
        if found and subject.is_quiet(oracle):
            return "wrong: " + found[:200]
        with environment(HEED_MUTATE=name):
            text, _ = run_tool([tool("heedc"), subject.source, "--emit=halide", "--explain=json", "-o", os.devnull])
        return "refused, said" if "cannot be proven equal" in text else "refused"
