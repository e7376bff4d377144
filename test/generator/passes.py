"""The IR after each pass, run by the reference backend: the first pass after which the numbers differ is the guilty one. And what passes said."""
import collections
import json
import pathlib
import re

from inputs import weights_type
from oracles import Failure, check_backend
from tools import run_tool, tool

DUMP = re.compile(r"// -----// IR Dump (?:After|Before) \w+ \(([\w-]+)\).*\n")
LAST = "attn-to-halide"  # what it makes the reference does not take


def stages(before, prints):
    """(pass, IR) for each print."""
    text, code = run_tool([tool("heed-opt"), before, "--heed-kernels", "-o", "/dev/null", "--mlir-disable-threading", *prints])
    parts = DUMP.split(text)
    found = list(zip(parts[1::2], parts[2::2]))
    if code:
        error = " ".join([line.replace(str(before), "before.mlir") for line in text.splitlines() if "error:" in line or "Assertion" in line][:3])
        # A shrinker keeps the kind: without what follows from names and sizes.
        short = re.sub(r"[\w./]*:\d+:\d+: |\d+", "", error)[:60]
        raise Failure(f"refused ({code} {short})", f"heed-opt --heed-kernels: exit code {code} after {found[-1][0] if found else 'nothing'}: {error}")
    return [(name, ir) for name, ir in found if "halide.pipeline @" not in ir]


def check_after(ir, folder, model, known):
    file = pathlib.Path(folder) / "after.mlir"
    file.write_text(ir)
    check_backend(file, folder, "reference", model, known)


def emitted(source, folder, model):
    """The front end's IR, in a file."""
    before = pathlib.Path(folder) / "before.mlir"
    text, code = run_tool([tool("heedc"), source, "--emit=attn", *weights_type(model), "-o", before])
    if code:
        raise Failure("refused", text)
    return before


def final(before):
    """The IR after the passes, as far as the reference takes it: (name, text) once, or nothing."""
    return stages(before, [f"--mlir-print-ir-before={LAST}"])


def check_passes(source, folder, model, known):
    """The last IR that the reference takes; if that is wrong, the guilty pass is named in the failure."""
    before = emitted(source, folder, model)
    try:
        for _, ir in final(before):
            check_after(ir, folder, model, known)
    except Failure as last:
        for name, ir in stages(before, ["--mlir-print-ir-after-change", "--mlir-print-ir-after-all", "--mlir-print-ir-module-scope"]):
            try:
                check_after(ir, folder, model, known)
            except Failure as e:
                raise Failure(f"{e.kind} after {name}", e.text, e.dims, e.seed)
        raise last


def remarks(text):
    """Counts what --explain=json said, with names and numbers left out."""
    said = collections.Counter()
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                r = json.loads(line)
            except ValueError:
                continue
            if r["kind"] == "summary":
                continue
            message = re.sub(r"(costs|reach keys|proven equal:) .*", r"\1 _", r["message"])
            message = re.sub(r"'[^']*'|\[[^\]]*\]|\S*\d\S*|\b\w+_\w+\b|\S*\*\S*|\b[A-Z]\b", "_", message)
            message = re.sub(r"\(_ bytes\)|_( [-+*/] _)+", "_", message)
            message = re.sub(r"_( of f32|,| _| and _)*(?= |$)", "_", message)
            said[f"{r['pass']}: {r['kind']}: {message[:300]}"] += 1
    return said


def explained(source, folder, model):
    """Remarks of all passes and the halide ops, without generating code of kernels."""
    output = pathlib.Path(folder) / "kernels.mlir"
    for kind in "llvm", "halide":
        text, code = run_tool([tool("heedc"), source, f"--emit={kind}", *weights_type(model), "--explain=json", "-o", output])
        if code:
            text = "\n".join(line for line in text.splitlines() if not line.startswith("{"))
            raise Failure("refused", text.replace(str(source), "drawn.heed"))
        # The host's passes see the kernels only where they are compiled.
        said = remarks(text) if kind == "llvm" else said
    said.update("op " + name for name in set(re.findall(r"\bhalide\.[a-z_]+|\battn\.[a-z_]+", output.read_text())))
    return said
