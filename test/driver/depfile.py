# RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin %t
"""heedc -MD: what an output was made of, in a form that make and ninja read; with the output it is written whole or not at all."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

import numpy as np

from runs import expect, expect_error, finish, run
from safetensors_file import header_and_data, pack

heedc = pathlib.Path(sys.argv[1]) / "heedc"
os.chdir(sys.argv[2])

MODEL = """import "a b/scale $1.heed"
import "#deep:er.heed"
config "settings.json"
model m(x: f32[N]) {
  param w: f32[D] @ "w"
  return y[i] = scaled(x[i]) * factor * w[0] + more()
}
"""
for folder in ("a b", "inc", "in\\ c", "dir"):
    pathlib.Path(folder).mkdir()
pathlib.Path("m.heed").write_text(MODEL)
pathlib.Path("a b/scale $1.heed").write_text("fn scaled(x) = 2 * x\n")
pathlib.Path("inc/#deep:er.heed").write_text("import \"x#y.heed\"\nfn more() = 1.0\n")
pathlib.Path("in\\ c/x#y.heed").write_text("fn unused(x) = x\n")
pathlib.Path("dir/settings.json").write_text(json.dumps({"factor": 3}))
for part, name in enumerate("wv", 1):
    pathlib.Path(f"part-{part}.safetensors").write_bytes(pack(*header_and_data({name: np.ones(4, np.float32)})))
pathlib.Path("w.safetensors.index.json").write_text(json.dumps(
    {"weight_map": {"w": "part-1.safetensors", "v": "part-2.safetensors"}}))
READ = ["m.heed", "a b/scale $1.heed", "inc/#deep:er.heed", "in\\ c/x#y.heed", "dir/settings.json",
        "w.safetensors.index.json", "part-1.safetensors", "part-2.safetensors"]
FLAGS = ["-Iinc", "-Iin\\ c", "--model-dir=dir", "--weights=w.safetensors.index.json"]


def compiled(*options):
    done = run(heedc, "m.heed", *FLAGS, *options)
    expect(done.returncode == 0 and not done.stderr, f"{options}: {done.returncode}: {done.stderr}")


# The names, and where the rule goes.
compiled("--emit=attn", "-o", "m.mlir", "-MD")
compiled("--emit=attn", "-o", "m.mlir", "-MF", "other.d")
text = pathlib.Path("m.mlir.d").read_text()
expect(text == pathlib.Path("other.d").read_text(), "-MD and -MF differ")
expect(text.startswith("m.mlir: ") and text.endswith("\n") and len(text.splitlines()) == 1 + len(READ), text)
for emit in ("ast", "header", "obj", "lib", "shared", "exe"):
    compiled(f"--emit={emit}", "-o", "out", "-MD")
    same = pathlib.Path("out.d").read_text()
    # The tree is made of sources alone.
    wanted = [w for w in READ if emit != "ast" or "safetensors" not in w]
    expect(same.count("\\\n") == len(wanted), f"{emit}: {same}")
run(heedc, "m.mlir", "--emit=obj", "-o", "ir.o", "-MD")
expect(pathlib.Path("ir.o.d").read_text() == "ir.o: \\\n  m.mlir\n", "IR as input")
compiled("--emit=attn", "-o", "a $b #1:2.mlir", "-MF", "strange.d")


# As make and ninja read it: a change of any file makes the output anew, and nothing else does.
def rule(tool, output, depfile):
    command = f"'{heedc}' m.heed {shlex.join(FLAGS)} --emit=attn -o {output} -MF {depfile}"
    if tool == "make":
        pathlib.Path("Makefile").write_text(f"{output}:\n\t{command}\n-include {depfile}\n")
        return ["make"]
    pathlib.Path("build.ninja").write_text(
        f"rule heed\n command = {command}\n depfile = {depfile}\nbuild {output}: heed m.heed\n")
    return ["ninja"]


time = 4_000_000_000  # file times far from each other, so that no test depends on the clock
for tool in ("make", "ninja"):
    if not shutil.which(tool):
        continue
    command = rule(tool, f"{tool}.mlir", f"{tool}.d")
    expect(run(*command).returncode == 0, f"{tool}: the first time")
    for path in READ:
        for target in READ:
            os.utime(target, (1, 1))
        expect("heedc" not in run(*command).stdout, f"{tool}: runs though nothing has changed")
        os.utime(path, (time, time))
        done = run(*command)
        expect(done.returncode == 0 and ("heedc" in done.stdout or "[1/1]" in done.stdout),
               f"{tool}: {path} has changed: {done.stdout}{done.stderr}")

# Mistakes.
expect_error(run(heedc, "m.heed", *FLAGS, "--emit=attn", "-MD"), "expected an output file beside -MD, found standard output")
expect_error(run(heedc, "m.heed", *FLAGS, "-o", "new", "-MF", "./new"), "found './new' for both")
expect_error(run(heedc, "m.heed", *FLAGS, "-o", "new", "-MF", "m.heed"), "cannot write 'm.heed': it is an input")
expect_error(run(heedc, "m.heed", *FLAGS, "-o", "new", "-MF", "no/such.d"), "cannot write 'no/such.d'")
pathlib.Path("two\nlines.heed").write_text("model m(x: f32[N]) { return y[i] = x[i] }\n")
done = run(heedc, "two\nlines.heed", "--emit=attn", "-o", "new", "-MD")
expect(done.returncode == 1 and "it holds a line break" in done.stderr, done.stderr)
expect(not os.path.exists("new") and not os.path.exists("new.d"), "a mistake left a file")

# A dependency file that turns into a folder while heedc works: the output that was there stays, none appears where none was.
for old in ("old", None):
    for emit in ("attn", "exe"):
        pathlib.Path("kept").unlink(missing_ok=True)
        if old:
            pathlib.Path("kept").write_text(old)
            os.chmod("kept", 0o751)
        os.mkfifo("pipe.heed")
        before = sorted(os.listdir("."))
        heed = subprocess.Popen([heedc, "pipe.heed", f"--emit={emit}", "-o", "kept", "-MF", "later.d"], stderr=subprocess.PIPE, text=True)
        with open("pipe.heed", "w") as pipe:  # opens when heedc reads: after it has looked at its outputs
            os.mkdir("later.d")
            pipe.write("model m(x: f32[N]) { return y[i] = x[i] }\n")
        said = heed.communicate(timeout=300)[1]
        expect(heed.returncode == 1 and "cannot write 'later.d'" in said, f"{emit}: {heed.returncode}: {said}")
        os.rmdir("later.d")
        expect(sorted(os.listdir(".")) == before, f"{emit}: left {set(os.listdir('.')) ^ set(before)}")
        if old:
            expect(pathlib.Path("kept").read_text() == old and os.stat("kept").st_mode & 0o777 == 0o751, f"{emit}: the old output is lost")
        os.remove("pipe.heed")
finish()
