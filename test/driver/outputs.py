# RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin %S %t
"""Outputs appear whole or not at all: where one cannot be written, heedc says why, exits with 1 and leaves no file."""
import os
import pathlib
import re
import resource
import sys

from runs import expect, finish, run

heedc, inputs = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2]) / "Inputs"
os.chdir(sys.argv[3])
pathlib.Path("tmp").mkdir()
os.environ["TMPDIR"] = os.path.abspath("tmp")
pathlib.Path("scale.mlir").write_text((inputs / "scale.mlir").read_text())
pathlib.Path("linear.heed").write_text((inputs / "linear.heed").read_text())
KINDS = ("ast", "attn", "halide", "stmt", "llvm", "asm", "obj", "lib", "shared", "header", "exe")
# The most bytes of a file that each kind does not fit in, though its parts do.
LIMITS = dict(ast=20, attn=20, halide=20, llvm=20, header=20, obj=6500, lib=60000, shared=60000, exe=60000)


def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def source(kind):
    return "linear.heed" if kind == "ast" else "scale.mlir"


def listing():
    return sorted(str(p) for p in pathlib.Path(".").rglob("*"))


# What is said where a file may not grow: by us and by linkers, or by a compiler driver whose linker was ended by the signal.
TOO_LARGE = "File (too large|size limit exceeded)"


def fails(text, *command, program=heedc, **options):
    before = listing()
    done = run(program, *command, **options)
    found = re.search(TOO_LARGE, done.stderr) if text == TOO_LARGE else text in done.stderr
    expect(done.returncode == 1 and "heedc: error: " in done.stderr and found,
           f"{command}: expected {text!r}, found exit code {done.returncode}: {done.stderr}")
    expect(listing() == before, f"{command}: left {set(listing()) - set(before)}")


pathlib.Path("folder").mkdir()
os.symlink("scale.mlir", "alias")
pathlib.Path("old").write_text("old")
for kind in KINDS:
    # No place for it: said before any work is done.
    fails("cannot write 'folder': Is a directory", source(kind), "--emit=" + kind, "-o", "folder")
    fails("cannot write 'no/such': No such file or directory", source(kind), "--emit=" + kind, "-o", "no/such")
    fails("cannot write 'old/below': Not a directory", source(kind), "--emit=" + kind, "-o", "old/below")
    fails(f"cannot write './{source(kind)}': it is an input", source(kind), "--emit=" + kind, "-o", "./" + source(kind))
    # A full disk, where the output is written in place and where it is renamed.
    fails("cannot write '/dev/full': No space left on device", source(kind), "--emit=" + kind, "-o", "/dev/full")
    if kind in LIMITS:
        fails(TOO_LARGE, source(kind), "--emit=" + kind, "-o", "old", preexec_fn=lambda: limit(LIMITS[kind]))
    expect(pathlib.Path("old").read_text() == "old", f"{kind}: a failure changed the file that was there")
# A disk that is full only when the linker writes.
for kind in ("shared", "exe"):
    fails(TOO_LARGE, "scale.mlir", "--emit=" + kind, "-o", "out", preexec_fn=lambda: limit(110000))
fails("it is an input", "scale.mlir", "-o", "alias")
fails("it is an input", "linear.heed", "--weights", "old", "-o", "old")
done = run("sh", "-c", f"'{heedc}' scale.mlir --emit=attn > /dev/full")
expect(done.returncode == 1 and done.stderr == "heedc: error: cannot write 'standard output': No space left on device\n",
       f"standard output: {done.returncode}: {done.stderr}")
# Standard output that is closed: nothing that is opened later takes its place.
os.symlink("/proc/self/fd/1", "stdout")  # as /dev/stdout is one
for kind in KINDS:
    for place in ("-", "stdout"):
        fails("cannot write", "-c", f"'{heedc}' {source(kind)} --emit={kind} -o {place} >&-", program="sh")
expect(os.path.islink("stdout"), "the link to standard output is replaced")
done = run("sh", "-c", f"'{heedc}' scale.mlir --emit=header -o closed <&- >&- 2>&-")
expect(done.returncode == 0 and "scale_model" in pathlib.Path("closed").read_text(), "without standard streams")
os.remove("closed")
# A link to nowhere, a folder as input, IR beside the output that is the input.
os.symlink("no/such", "astray")
fails("cannot write 'astray': No such file or directory", "scale.mlir", "-o", "astray")
fails("folder/config.json cannot be read: no such file or directory: expected the folder of a Hugging Face checkpoint", "folder", "-o", "out")
pathlib.Path("out.attn.mlir").write_text(pathlib.Path("scale.mlir").read_text())
fails("cannot write 'out.attn.mlir': it is an input", "out.attn.mlir", "--save-temps", "-o", "out")
os.remove("out.attn.mlir")
# No folder for temporary files; no linker.
for kind in ("obj", "exe"):
    fails("cannot write a temporary file: No such file", "scale.mlir", "--emit=" + kind, "-o", "out",
          env={**os.environ, "TMPDIR": "/no/such"})
    fails("no linker found: expected 'cc'", "scale.mlir", "--emit=" + kind, "-o", "out", env={"PATH": "/no/such"})
done = run(heedc, "scale.mlir", "-o", "one", "-o", "two")
expect(done.returncode == 0 and not pathlib.Path("one").exists() and pathlib.Path("two").exists(), "the last -o counts")

# What is there is replaced, also behind a link; devices, pipes and standard output are written, not replaced.
os.symlink("old", "link")
expect(run(heedc, "scale.mlir", "--emit=header", "-o", "link").returncode == 0, "a link as output")
expect(os.path.islink("link") and "scale_model" in pathlib.Path("old").read_text(), "the file behind a link")
os.symlink("folder/new", "to-new")
expect(run(heedc, "scale.mlir", "--emit=header", "-o", "to-new").returncode == 0, "a link to what is not there yet")
expect(os.path.islink("to-new") and "scale_model" in pathlib.Path("folder/new").read_text(), "the new file behind a link")
for kind in ("header", "obj", "exe"):
    os.mkfifo("pipe") if kind == "header" else None
    expect(run(heedc, "scale.mlir", "--emit=" + kind, "-o", "file").returncode == 0, kind)
    for place in ("/dev/stdout", "-"):
        with open("copy", "wb") as copy:
            done = run("sh", "-c", f"'{heedc}' scale.mlir --emit={kind} -o {place} | cat > copy")
        expect(done.returncode == 0 and pathlib.Path("copy").read_bytes() == pathlib.Path("file").read_bytes(),
               f"{kind} to {place}: {done.stderr}")
    done = run("sh", "-c", f"cat pipe > copy & '{heedc}' scale.mlir --emit={kind} -o pipe && wait")
    expect(done.returncode == 0 and pathlib.Path("copy").read_bytes() == pathlib.Path("file").read_bytes(),
           f"{kind} to a pipe: {done.stderr}")
expect(not list(pathlib.Path("tmp").iterdir()), f"temporary files: {list(pathlib.Path('tmp').iterdir())}")
finish()
