# RUN: %python %s %heed_src %heed_build %t
# UNSUPPORTED: asan
# (the compiled libraries are linked without the sanitizer that the runtime would want)
"""bench/generate.py on a small checkpoint: what it writes is complete, other tokens than Heed's are refused, and the page has its tables. No peer is asked, no time
is judged."""
import json
import os
import pathlib
import shutil
import sys
import types

import numpy as np

from runs import expect, finish

source, build, folder = (pathlib.Path(a) for a in sys.argv[1:4])
shutil.rmtree(folder, ignore_errors=True)
sys.path[:0] = [str(source / "bench"), str(source / "python")]
os.environ["PYTHONPATH"] = str(source / "python")
import checkpoints  # of bench/
import generate
import generate_cases
import generate_page
import gguf
import page
import report
from machine import Machine

checkpoints.HOME = str(folder / "checkpoints")
checkpoints.make.__defaults__ = (checkpoints.HOME, True)

# Sizes of the real ones: 124 million parameters, 596 and 1236; a step of Qwen3 reads them and the keys and values of its 28 layers.
for key, count in (("gpt2", 124.4e6), ("qwen3-0.6b", 596.0e6), ("llama-3.2-1b", 1235.8e6)):
    total = sum(int(np.prod(shape)) for _, shape, _, _ in checkpoints.tensors_of(checkpoints.config_of(key)))
    expect(abs(total / count - 1) < 1e-3, f"{key} has {total} parameters")
shape = generate_cases.Shape("qwen3-0.6b", "bf16", 8, 512)
flops, reads, writes = shape.cost("step")
expect(abs(reads / (2 * 596e6 + 2 * 28 * 8 * 128 * (512 + 32) * 8 * 2) - 1) < 1e-3 and writes == 2 * 28 * 8 * 128 * 8 * 2, f"{reads} {writes}")
expect(abs(flops / (8 * (2 * 596e6 + 4 * 28 * 16 * 128 * 544)) - 1) < 1e-3, f"{flops}")

# Types hold the same numbers, rounded; GGUF holds the same matrices.
stored = {t: gguf.tensors_of(checkpoints.make("tiny", t)) for t in checkpoints.TYPES}
for name, (kind, array) in stored["f32"].items():
    for t, bits in (("bf16", 8), ("f16", 11)):
        other = gguf.in_f32(*stored[t][name])
        expect(kind == "F32" and np.abs(other - array).max() <= 2.0**-bits * np.abs(array).max(), f"{name} in {t}")
expect(checkpoints.stored(np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8], np.float32), "bf16").tolist() == [0x3F80, 0x3F82], "ties go to even")
gguf.write(checkpoints.make("tiny", "bf16"), str(folder / "tiny.gguf"))
data = (folder / "tiny.gguf").read_bytes()
expect(data[:4] == b"GGUF" and stored["bf16"]["model.layers.1.mlp.up_proj.weight"][1].tobytes() in data, "tiny.gguf")

options = types.SimpleNamespace(out=str(folder), build=str(build), target="host", clock="wall", each=0.001, seconds=0.1, within=0.015, blocks=11, moved=0.03, peers="none")
core = min(os.sched_getaffinity(0))
group = types.SimpleNamespace(cores=[core], machine=Machine(str(folder), [core]))
results, _ = generate.measure_shape(generate_cases.Shape("tiny", "f32", 2, 32), str(folder / "case"), group, options, [])
group.machine.close()
expect([r["name"] for r in results] == ["tiny f32 N=32 B=2 prefill", "tiny f32 N=32 B=2 step"] and "failed" not in results[0], f"{results[0].get('failed')}")
for r in results:
    heed = r["systems"][0]
    expect(heed["system"] == "heed" and heed["difference"] == 0 and len(heed["blocks"]) >= 10 and all(r["processes"][way]["all"] > 0 for way in ("heed", "heed, packed")), f"{r['name']}: {r}")

# Checkpoints in bf16 have shapes with products in bf16, whose library is another one; its tokens are near enough for a race.
expect([s.products for s in generate_cases.shapes() if s.type != "f16"].count("bf16") == 12, "shapes with products in bf16")
shape = generate_cases.Shape("tiny", "bf16", 2, 32, "bf16")
expect(shape.name == "tiny bf16 products=bf16 N=32 B=2", shape.name)
libraries = [generate.compiled(generate_cases.Shape("tiny", "bf16", 2, 32, products), options) for products in ("f32", "bf16")]
expect(not any("error" in made for made in libraries), f"{libraries}")
expect(len({pathlib.Path(made["library"]).read_bytes() for made in libraries}) == 2, "products in bf16 make no difference")

# A worker says how far other tokens lie below Heed's.
case = {"folder": checkpoints.make("tiny", "f32"), "library": str(folder / "generate/tiny-f32/model.so"), "prefix": "bench", "type": "f32", "B": 2, "N": 32, "new": 64, "check": 5}
system = generate.worker("heed", [core], options)
made = system.ask(do="open", case=case, way="heed", ids=str(folder / "case/ids.npy")) if (folder / "case/ids.npy").exists() else {}
expect(np.array(made.get("tokens")).shape == (2, 5), f"{made}")
own, other = (system.ask(do="gap", tokens=(np.array(made["tokens"]) + by).clip(0, 499).tolist())["gap"] for by in (0, 1))
system.close()
expect(own == 0 and other > 0.1, f"gaps {own} and {other}")

# The page, with a peer that is twice as slow.
for r in results:
    blocks = [{**b, "B": [2 * x for x in b["A"]], "limits": b["limits"] + b["limits"][:2]} for b in r["systems"][0]["blocks"]]
    r["systems"] = [{**r["systems"][0], "blocks": []}, {**r["systems"][0], "system": "twice", "variant": "twice", "group": "peer", "trial": [1.0], "blocks": blocks}]
    r["time"] = "2026-01-01T00:00:00Z"
run = {"version": "0", "commit": "x", "target": "host", "clock": "wall", "within": 0.015, "began": "a", "ended": "b", "minutes": 1, "machine": {"cpu": "c", "cores": [0]},
       "systems": {}, "cases": results}
made = report.summary(run)
text = page.markdown(json.loads(json.dumps(made)), "generate-performance")
line = next(line for line in text.splitlines() if line.startswith("| tiny f32 N=32 B=2 | 1 | "))
mine, theirs = float(line.split("|")[4]), float(line.split("|")[6].split()[0])
expect("# Performance of generation" in text and abs(mine / theirs - 2) < 0.1 and "(twice)" in line, line)
expect(f"| {generate_page.PROCESSES[0]} | " in text and "| tiny f32 |" in text, text)
finish()
