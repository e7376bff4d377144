# RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin %S %t
"""Every kind of output from every kind of input: a source, attn IR and halide IR, as files and on standard input."""
import os
import pathlib
import subprocess
import sys

from runs import expect, finish, run

heedc, source = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2]) / "Inputs/linear.heed"
os.chdir(sys.argv[3])
HOLDS = {"ast": b"model", "attn": b"func.func @lin", "halide": b"halide.pipeline @", "stmt": b"for ", "llvm": b"@lin_model = ",
         "asm": b"lin.lin.run:", "obj": b"\x7fELF", "lib": b"!<arch>", "shared": b"\x7fELF", "header": b"lin_model;",
         "exe": b"\x7fELF"}

pathlib.Path("lin.heed").write_text(source.read_text())
for name, kind in (("attn", "attn"), ("halide", "halide")):
    done = run(heedc, "lin.heed", "--emit=" + kind, "-o", name + ".mlir")
    expect(done.returncode == 0, done.stderr)

for file in ("lin.heed", "attn.mlir", "halide.mlir"):
    for kind, part in HOLDS.items():
        outputs = []
        for place in (file, "-") if kind in ("ast", "attn", "halide", "header", "exe") else (file,):
            with open(file) as text:
                done = run(heedc, place, "--emit=" + kind, "-o", "out", stdin=text)
            if kind == "ast" and file != "lin.heed":
                expect(done.returncode == 1 and done.stderr == f"heedc: error: --emit=ast needs a source, '{place}' is IR\n",
                       f"ast of {place}: {done.stderr}")
                continue
            expect(done.returncode == 0 and done.stderr == "", f"{kind} of {place} ({file}): {done.stderr}")
            if done.returncode == 0:
                outputs.append(pathlib.Path("out").read_bytes())
                expect(part in outputs[-1], f"{kind} of {place} ({file})")
                os.remove("out")
        # Elsewhere the source's name tells them apart.
        if kind in ("ast", "header", "stmt"):
            expect(len(set(outputs)) <= 1, f"{kind} of {file}: standard input gives other bytes")

# Without -o text goes to standard output and the rest gets a name.
for kind, name in (("obj", "model.o"), ("lib", "libmodel.a"), ("shared", "libmodel.so"), ("exe", "model")):
    with open("lin.heed") as text:
        expect(run(heedc, "-", "--emit=" + kind, stdin=text).returncode == 0 and os.path.exists(name), kind)

# Not IR, not a source.
for text in ("", "nonsense {", "module {", "module attributes {} {\n  func.func @f() { return }\n}"):
    for kind in ("ast", "attn", "exe"):
        done = subprocess.run([heedc, "-", "--emit=" + kind, "-o", "out"], input=text, capture_output=True, text=True)
        fine = kind == "attn" and text.startswith("module attributes") or kind == "ast" and text == ""
        expect(done.returncode == (not fine) and ("error: " in done.stderr) != fine, f"{text!r}, {kind}: {done.stderr}")
        expect(not os.path.exists("out") or fine, f"{text!r}, {kind}: a file")
        pathlib.Path("out").unlink(missing_ok=True)
finish()
