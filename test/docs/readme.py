# RUN: %python %s %heed_src/README.md heedc heed-opt %t
"""What the README shows is what the tools print: its model, the lines of --explain, its commands and the lines of the schedule.
What it lists is there: every pass of heed-opt, every architecture, every folder with a README, links that lead somewhere."""
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np

readme, heedc, opt, folder = sys.argv[1:]
root = os.path.dirname(os.path.abspath(readme))
text = open(readme, encoding="utf-8").read()
blocks = re.findall(r"```(\w*)\n(.*?)```", text, re.S)
model = "models/core/causal-attention.heed"
os.makedirs(folder, exist_ok=True)


def run(*command):
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout + done.stderr


def of(kind):
    found = [body for name, body in blocks if name == kind]
    assert found, f"the README has no {kind} block"
    return found


assert of("heed")[0] in open(os.path.join(root, model), encoding="utf-8").read(), "the model differs from its file"
program = os.path.join(folder, "causal")
said = re.sub(r"compiled in [\d.]+ s", "compiled in 2.0 s", run(heedc, model, "--target=x86-64-v4", "--explain", "-o", program)).splitlines()
assert said == of("explain")[0].splitlines(), "\n".join(said)
attn, kernels = os.path.join(folder, "a.mlir"), os.path.join(folder, "k.mlir")
run(heedc, model, "--emit=attn", "-o", attn)
assert "attn.attention" in run(opt, attn, "--attn-fuse-elementwise", "--attn-raise-attention")
run(heedc, model, "--target=x86-64-v4", "--emit=halide", "-o", kernels)
lines = {line.strip() for line in open(kernels)}
for line in of("halide")[0].splitlines():
    assert line in lines, f"not in the schedule: {line}"

# The first hour, command by command, in a folder that has what the repository has; `build/bin` is where the tools are.
there = os.path.join(folder, "hour")
os.makedirs(os.path.join(there, "build"), exist_ok=True)
for name, place in (("models", os.path.join(root, "models")), ("docs", os.path.join(root, "docs")), ("build/bin", os.path.dirname(subprocess.check_output(["which", heedc], text=True)))):
    if not os.path.islink(os.path.join(there, name)):
        os.symlink(place, os.path.join(there, name))
random = np.random.default_rng(1)
q, k, v = (random.standard_normal(shape).astype(np.float32) for shape in ((1, 4, 9, 16), (1, 2, 12, 16), (1, 2, 12, 8)))
for name, array in (("q", q), ("k", k), ("v", v)):
    np.save(os.path.join(there, name + ".npy"), array)
sys.path.append(os.path.join(root, "test", "huggingface"))
import tokenized  # a checkpoint of drawn weights, and a tokenizer
tokenized.checkpoint("llama", pathlib.Path(there, "checkpoint"), tokenized.byte_pairs())
hour = text[text.index("## The first hour"):text.index("## What is supported")]
commands = [line.split(" #")[0].strip() for kind, body in re.findall(r"```(\w*)\n(.*?)```", hour, re.S) if not kind for line in body.splitlines()]
assert len(commands) >= 8, commands
commands.remove("pip install ./python")  # test/python/install.py does that
# One shell, as a reader has: what a command needs, another one before it has set.
tools = os.path.dirname(subprocess.check_output(["which", heedc], text=True))
bare = {**os.environ, "PATH": os.pathsep.join(p for p in os.environ["PATH"].split(os.pathsep) if os.path.realpath(p) != os.path.realpath(tools))}
bare.pop("HEEDC", None)
shell = subprocess.run(["bash", "-ex"], input="\n".join(commands), cwd=there, env=bare, capture_output=True, text=True)
assert shell.returncode == 0, shell.stderr
os.environ["PATH"] = os.path.join(there, "build/bin") + os.pathsep + os.environ["PATH"]
sys.path.insert(0, os.path.join(root, "python"))
s = np.einsum("bhie,bhje->bhij", q, np.repeat(k, 2, 1).astype(float)) / 4
s[..., np.arange(9)[:, None] + 3 < np.arange(12)] = -np.inf
p = np.exp(s - s.max(-1, keepdims=True))
expected = np.einsum("bhij,bhjf->bhif", p / p.sum(-1, keepdims=True), np.repeat(v, 2, 1).astype(float))
os.chdir(there)
known = {"q": q, "k": k, "v": v}
exec(of("python")[0], known)
for name, o in (("o.npy", np.load("o.npy")), ("m(q, k, v)", known["o"])):
    assert np.abs(o - expected).max() < 1e-5 * np.abs(expected).max(), f"{name} is not what NumPy says"

# The figure of speed is one of docs/performance.md.
claim = re.search(r"it takes (\d+) ms, ([\d.]+) times as fast", text)
measured = json.load(open(os.path.join(root, "docs/performance.json"), encoding="utf-8"))["cells"]
cell = next(c for c in measured if c["name"] == "causal N=2048 E=64 H=8" and c["threads"] == 1)
assert claim and claim[1] == f"{1000 * cell['median']:.0f}" and claim[2] == f"{cell['ratio']:.2f}", (claim and claim[0], cell["median"], cell["ratio"])

passes = set(re.findall(r"^ {6}--(?:attn|halide)-(?!verify-)(\S+) +-", run(opt, "--help"), re.M)) - {"decompose"}  # that is the reference's
row = re.search(r"^\| passes \| (.*?);", text, re.M)[1]
assert passes == set(row.split(", ")), f"passes: {sorted(passes)}"
architectures = len(os.listdir(os.path.join(root, "frontend/HuggingFace/architectures")))
assert re.findall(r"(\d+) architectures", text) == [str(architectures)] * 2, f"there are {architectures} architectures"
for document in ["README.md", "CONTRIBUTING.md", *(f"docs/{name}" for name in os.listdir(os.path.join(root, "docs")) if name.endswith(".md"))]:
    folder = os.path.dirname(document)
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", open(os.path.join(root, document), encoding="utf-8").read(), flags=re.S)  # code has brackets, too
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
        assert os.path.exists(os.path.join(root, folder, link)), f"{document}: no {link}"
for folder in sorted(os.listdir(root)):
    if os.path.isdir(os.path.join(root, folder)) and not folder.startswith((".", "build", "__")) and folder != "shared":
        assert os.path.exists(os.path.join(root, folder, "README.md")), f"{folder}/ has no README.md"
