# RUN: rm -rf %t && env PYTHONPATH=%heed_src/python:%heed_src/test/support:%heed_src/test/huggingface %python %s %heed_src %heed_bin/heedc %t
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""docs/huggingface.md: its tables are what tools/model-types.py makes of the sources, its commands run, its example of a model of one's own does what it
says, and its messages are the compiler's and the runtime's. What the tool says of a made-up architecture is what it should say."""
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np

import safetensors_file
import tokenized
import weights
from runs import expect, finish, run

root, heedc, folder = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
page = (root / "docs/huggingface.md").read_text(encoding="utf-8")
stored = root / "test/huggingface/expected"
spec = importlib.util.spec_from_file_location("tool", root / "tools/model-types.py")
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)
CONTEXT = 40


def blocks(kind):
    return [body for name, body in re.findall(r"^```(\S*)\n(.*?)^```$", page, re.S | re.M) if name == kind]


def check_tables():
    done = run(sys.executable, root / "tools/model-types.py", "--check")
    expect(done.returncode == 0, f"docs/huggingface.md is not what the sources say: {done.stdout}{done.stderr}")
    found = [tool.Architecture(root, path) for path in sorted((root / tool.FOLDER / "architectures").glob("*.heed"))]
    expect(len(found) >= 25 and {one.kind for one in found} == set(tool.KINDS), f"architectures: {[one.type for one in found]}")
    for one in found:
        expect(one.papers and one.entries and one.reads and "default" in one.compared, f"{one.path}: the tool found {vars(one)}")
        expect((root / "test/huggingface" / f"{one.type}.py").exists(), f"{one.type}: no test")
        if one.type not in ("vit", "clip", "whisper"):
            check_entries(one)


def check_entries(one):
    """The inputs that the page gives to entries of this kind are those of the file."""
    part = page[page.index("## Entries"):page.index("**States.**")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines() if line.startswith("|")]
    kind, inputs = "", {}
    for group, names, given, _ in rows[2:]:
        kind = group or kind
        for name in re.findall(r"`(\w+)`", names):
            inputs[kind, name] = re.findall(r"`(\w+: .*?)`", given.split(" (")[0])
    decoder = inputs["decoders", "forward"]
    for name, signature in one.entries:
        wanted = {"encode_pairs": [inputs["encoders", "encode"][0], *inputs["encoders", "encode_pairs"], inputs["encoders", "encode"][1]],
                  "forward": decoder, "scores": decoder}.get(name) or inputs[one.kind + "s", name]
        expect(signature == ", ".join(wanted), f"{one.type}, {name}({signature}): the page has {wanted}")


def check_made_up():
    """A tree with one architecture, whose table differs from an old page."""
    tree = folder / "tree"
    for name, text in {
        "frontend/HuggingFace/architectures/new.heed":
            '# New: what is new. Equals NewModel.\n# A and B 2025, "New: A | B"; C et al. 2026, "Newer".\nconfig "config.json", d = 4,\n'
            '  rope.x = none\nimport "../lib/l.heed"\n\nmodel new {\n  state len: i32[B]\n  entry forward(ids: i32[B, N]) {\n    if d == 0 { error("d = {d} is not supported") }\n'
            "    return logits[b,v:8] = f32(ids[b,0])\n  }\n}\n",
        "frontend/HuggingFace/lib/l.heed": 'config "config.json", e = 1, rope_record = none\nimport "m.heed"\n',
        "frontend/HuggingFace/lib/m.heed": 'import "l.heed"\nconfig "config.json", f = d\n',
        "test/huggingface/expected/new/default/case.json": '{"kind": "decoder"}',
        "test/huggingface/expected/new/default/config.json": '{"architectures": ["NewModel"]}',
        "test/huggingface/expected/new/wrong/case.json": '{"kind": "decoder", "error": "d = 0"}',
        "test/huggingface/expected/new/again/case.json": '{"kind": "decoder"}',
        "docs/huggingface.md": "before\n<!-- made: configs -->\nold\n<!-- end -->\nbehind\n",
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    made = tool.page(tree)
    for line in ("| [new](../frontend/HuggingFace/architectures/new.heed) | NewModel | `forward` | 10 | default, again | "
                 "A and B 2025, *New: A \\| B*; C et al. 2026, *Newer* |",
                 "1 values of `model_type`, 2 test checkpoints"):
        expect(line in made["model types"], f"no {line!r} in {made['model types']}")
    expect("| new | `d` `rope` `e` `f` | d = … is not supported |" in made["configs"], made["configs"])
    text = tool.written((tree / "docs/huggingface.md").read_text(), made)
    expect(text.startswith("before\n<!-- made: configs -->\n") and "old" not in text and text.endswith("<!-- end -->\nbehind\n"), text)
    (tree / "tools").mkdir()
    shutil.copy(root / "tools/model-types.py", tree / "tools")
    done = run(sys.executable, tree / "tools/model-types.py", "--check")
    expect(done.returncode == 1 and "\n-old\n" in done.stdout, f"an old table: {done.stdout}{done.stderr}")


def check_commands():
    """All of them, in a folder that has the repository's docs; between the last two blocks the line that the page proposes comes into the file."""
    there = folder / "hour"
    there.mkdir(parents=True)
    checkpoint = tokenized.checkpoint("llama", there / "checkpoint", tokenized.byte_pairs())
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps({**config, "max_position_embeddings": CONTEXT}))
    (there / "docs").symlink_to(root / "docs")
    os.environ["PATH"] = os.pathsep.join([os.path.dirname(heedc), os.path.dirname(sys.executable), os.environ["PATH"]])
    os.environ["HEEDC"] = heedc
    begin, line = re.search(r"begins with `(.*?)`", page)[1], blocks("heed-line")[0]
    commands = [command for block in blocks("") for command in block.splitlines()]
    expect(len(commands) == 6, f"commands: {commands}")
    said = {}
    for command in commands:
        done = subprocess.run(command, shell=True, cwd=there, capture_output=True, text=True)
        expect(done.returncode == 0, f"{command}: {done.stderr}")
        said[command] = done.stdout
        if "--emit=heed" in command:
            own = (there / "own.heed").read_text()
            (place,) = re.findall(rf"^ *{re.escape(begin)}.*\n", own, re.M)
            (there / "own.heed").write_text(own.replace(place, place + line))
    expect(all(said[command] for command in commands if not command.startswith("heedc")), f"what commands print: {said}")
    compare_own(there)
    np.save(there / "ids.npy", np.array([[3, 14, 15]], np.int32))
    np.save(there / "count.npy", np.array([3], np.int32))
    done = run("./model", "--weights", "checkpoint", "--ids", "ids.npy", "--count", "count.npy", "--dim", "C=2", cwd=there)
    expect(done.returncode == 1 and blocks("text")[1].strip() in done.stderr, f"a full cache: {done.stderr}")


def compare_own(there):
    """Scores of a prompt by both programs: the same within the context, others beyond it."""
    ids = weights.integers("own", 3, 100, (1, CONTEXT + 20))
    np.save(there / "ids.npy", ids)
    np.save(there / "count.npy", np.array([ids.shape[1]], np.int32))
    found = []
    for program in ("model", "own"):
        done = run(f"./{program}", "--weights", "checkpoint", "--entry", "scores", "--ids", "ids.npy", "--count", "count.npy", "--dim", f"C={ids.shape[1]}",
                   "--output", f"{program}.npy", cwd=there)
        expect(done.returncode == 0, f"{program}: {done.stderr}")
        found.append(np.load(there / f"{program}.npy")[0])
    off = np.abs(found[0] - found[1]).max(1) / np.abs(found[0]).max()
    expect(off[:CONTEXT].max() < 1e-5 and off[CONTEXT + 5:].min() > 1e-4, f"a model of one's own: {off}")


def check_messages():
    missing, _, refused = (block.strip() for block in blocks("text"))
    for case, text in (("bert/relative", refused), ("llama/default", missing)):
        path = folder / case.replace("/", "-")
        parts = [json.loads((stored / case / name).read_text()) for name in ("case.json", "config.json")]
        weights.write(path, *parts)
        if text is missing:
            tensors = weights.tensors(parts[0])
            del tensors["model.layers.2.self_attn.q_proj.weight"]
            safetensors_file.write(path / "model.safetensors", tensors)
        done = run(heedc, path, "-o", folder / "out")
        expect(done.returncode == 1 and text in done.stderr, f"expected {text!r} in {done.stderr}")


check_tables()
check_made_up()
check_commands()
check_messages()
finish()
