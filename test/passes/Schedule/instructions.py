# RUN: %python %s %heed_bin %t
"""How many instructions small kernels take, against stored figures: where clocks vary, counts do not.

Counted by valgrind for AVX2 (it knows no AVX-512) with a described target, so that tiles are the same on every machine. A count may
leave its figure by 10 %; who changes a schedule for a reason stores the new ones: `%python instructions.py BIN FOLDER --store`.
"""
import json
import pathlib
import re
import subprocess
import sys

import numpy as np

from runs import expect, finish, run

bin_dir, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
stored = pathlib.Path(__file__).parent / "Inputs" / "instructions.json"
SLACK = 0.10
TARGET = re.sub(r"\s+", " ", """halide.target = {cores = 2 : i64,
  features = ["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse2", "sse3", "sse4.1", "sse4.2", "ssse3"],
  halide = "x86-64-linux-avx-avx2-f16c-fma-sse41", l1 = 32768 : i64, l2 = 1048576 : i64, l3 = 33554432 : i64, name = "x86-64-v3",
  triple = "x86_64-unknown-linux-gnu", vector_bits = 256 : i64, vector_registers = 16 : i64}, """)
ATTENTION = """model m(q: f32[N, 64], k: f32[M, 64], v: f32[M, 64]) {
  s[i, j] = sum(e) q[i, e] * k[j, e] / 8
  p[i, j] = softmax(j%s) s[i, j]
  return o[i, f] = sum(j) p[i, j] * v[j, f]
}"""


def attention(mask, n, m):
    return ATTENTION % mask, {"q": (n, 64), "k": (m, 64), "v": (m, 64)}


CASES = {
    "full attention 192x192": attention("", 192, 192),
    "causal attention 192x192": attention(" where j <= i + (M - N)", 192, 192),
    "window of 32, 256x256": attention(" where j <= i and i - j < 32", 256, 256),
    "one query, 1024 keys": attention("", 1, 1024),
    "attention 17x17": attention("", 17, 17),
    "product 96x128x256": ("model m(x: f32[N, 128], w: f32[128, 256]) { return y[n, o] = sum(i) x[n, i] * w[i, o] }",
                           {"x": (96, 128), "w": (128, 256)}),
    "product with gelu 96x128x256": ("model m(x: f32[N, 128], w: f32[128, 256]) { y[n, o] = sum(i) x[n, i] * w[i, o]\n"
                                     "return z[n, o] = gelu_tanh(y[n, o]) }", {"x": (96, 128), "w": (128, 256)}),
    "rms_norm 64x512": ("model m(x: f32[N, D], w: f32[D]) { r[n] = sum(d) x[n, d] * x[n, d] / D\n"
                        "return y[n, d] = x[n, d] / sqrt(r[n] + 1e-6) * w[d] }", {"x": (64, 512), "w": (512,)}),
    "softmax of rows 64x512": ("model m(x: f32[N, D]) { return y[n, d] = softmax(d) x[n, d] }", {"x": (64, 512)}),
    "silu 64x512": ("model m(x: f32[N, D]) { return y[n, d] = silu(x[n, d]) }", {"x": (64, 512)}),
}


def tool(name, *arguments):
    done = run(bin_dir / name, *arguments)
    expect(done.returncode == 0, f"{name} {arguments}: {done.stderr}")
    return done.stdout


def count(command):
    done = run("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command)
    found = re.search(r"Collected : (\d+)", done.stderr)
    expect(done.returncode == 0 and found, f"{command}: {done.stderr}")
    return int(found[1]) if found else 0


def instructions(text, shapes):
    """Of one run of the model, by one thread: what three runs more than the first ones add, over three."""
    source, attn, kernels, program = (folder / name for name in ("m.heed", "attn.mlir", "kernels.mlir", "m"))
    source.write_text(text)
    made = tool("heedc", source, "--emit=attn", "-o", "-")
    attn.write_text(made.replace("module attributes {", "module attributes {" + TARGET, 1))
    kernels.write_text(tool("heed-opt", "--heed-kernels", attn))
    tool("heedc", kernels, "--target=x86-64-v3", "-o", program)
    random, command = np.random.default_rng(1), [program, "--threads=1"]
    for name, shape in shapes.items():
        np.save(folder / f"{name}.npy", random.uniform(-1, 1, shape).astype("f"))
        command += [f"--{name}", folder / f"{name}.npy"]
    return (count([*command, "--bench=4"]) - count([*command, "--bench=1"])) // 3


found = {name: instructions(*case) for name, case in CASES.items()}
if "--store" in sys.argv:
    stored.parent.mkdir(exist_ok=True)
    stored.write_text(json.dumps(found, indent=1) + "\n")
expected = json.loads(stored.read_text())
expect(expected.keys() == found.keys(), f"expected figures of {list(found)}, found {list(expected)}")
for name, number in found.items():
    before = expected.get(name, 0)
    print(f"{name}: {number} instructions, stored {before}: {number / max(before, 1):.3f}")
    expect(abs(number - before) <= SLACK * before, f"{name}: {number} instructions, expected {before}")
finish()
