# RUN: %python %s %heed_src heedc %t
"""docs/zoo.md is what tools/zoo-page.py makes of the lists, the models and their stored summaries; each model stands in a list, under its group, names its
key, and has a summary and an oracle. What the page says of made-up systems is what it should say."""
import importlib.util
import json
import pathlib
import re
import shutil
import sys

from runs import expect, finish

root, heedc, folder = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
spec = importlib.util.spec_from_file_location("page", root / "tools/zoo-page.py")
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)

ANEW = "`python tools/zoo-page.py --count build/bin/heedc` writes it anew"
data, systems, models = tool.read_data(root), tool.systems(root), tool.models(root)
expect((root / tool.PAGE).read_text(encoding="utf-8") == tool.page(root, data), f"docs/zoo.md is not what its inputs give: {ANEW}")
expect(len(models) > 100 and len(systems) > 300, f"{len(models)} models, {len(systems)} systems")
expect(len(models) == len(list(root.glob("models/*/*.heed"))) - len(list(root.glob("models/lib/*.heed"))), "two models have one name")
for key, path in models.items():
    expect(key in systems, f"{path}: '{key}' stands neither in models/zoo.csv nor in models/extra.csv")
    expect(key not in systems or systems[key]["group"] == path.parent.name, f"{path}: the list has it in {systems.get(key, {}).get('group')}/")
    said = re.search(r"Key:\s(?:# )?(\S+)", path.read_text(encoding="utf-8"))
    expect(said and said[1] == key or systems.get(key, {}).get("relevance") == "extra", f"{path}: no comment 'Key: {key}'")
    expect(key in data, f"docs/zoo.json has no summary of '{key}': {ANEW}")
    expect(tool.oracle(root, key), f"{path}: no test/zoo/{key}.py")
expect(set(data) <= set(models), f"docs/zoo.json has summaries of what is not there: {sorted(set(data) - set(models))}")

# Pictures of masks: of models that there are, small, and (some) as heedc draws them now; a model with a softmax that has a
# `where` and an attention that streams has one.
drawn = {path.stem: path for path in root.glob(f"{tool.MASKS}/*.svg")}
REDRAW = f"`python tools/zoo-page.py --masks build/bin/heedc` draws them anew"
expect(set(drawn) <= set(models) and len(drawn) > 70, f"{len(drawn)} pictures; of no model: {sorted(set(drawn) - set(models))}")
for key, path in drawn.items():
    expect(path.stat().st_size < 15000, f"{path}: {path.stat().st_size} bytes")
for key, path in models.items():
    text = re.sub("#.*", "", path.read_text(encoding="utf-8"))
    if re.search(r"softmax\([\w, ]+ where", text) and data[key]["streaming"]:
        expect(key in drawn, f"no picture of the mask of '{key}': {REDRAW}")
for key in ("causal-attention", "sparse-transformer-strided", "bigbird", "longformer", "transformer-encdec", "varlen-packed-attention", "padded-batch-attention", "swin"):
    expect(tool.draw(root, heedc, models[key]) == drawn[key].read_text(encoding="utf-8"), f"the picture of '{key}' is another: {REDRAW}")
for key in ("mha", "ffn-relu"):
    expect(tool.draw(root, heedc, models[key]) is None and key not in drawn, f"a picture of '{key}', which has no mask")

# A tree of three systems: one is there, one is missing, one is beyond the list; lib/ is none.
shutil.rmtree(folder, ignore_errors=True)
for name, text in {
    "models/zoo.csv": "key,name,citation,group,relevance,tier\none,\"First, the\",A 2001; B 2002,core,must,1\ntwo,Second,C 2003,core,must,1\nthree,Third,D 2004,ffn,should,1\n",
    "models/extra.csv": "key,name,citation,group,relevance,tier\nfour,Fourth | last,E 2005,ffn,extra,1\n",
    "models/core/one.heed": "# Title. Key: one\n\nmodel one(x: f32[N]) { # comment\n  return y[n] = x[n]\n}\n",
    "models/ffn/four.heed": "model four(x: f32[N]) { return y[n] = x[n] }\n",
    "models/lib/pieces.heed": "fn f(x) { return x }\n",
    "test/zoo/one.py": "",
    "docs/zoo.json": "{}",
    "docs/masks/one.svg": "<svg/>",
}.items():
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
found = {"kernels": 2, "attentions": 2, "streaming": 1, "rowBlock": 0, "stored": ["B*H*M*N + 1", "4*N", "N*D"], "flops": "N", "why": ["rows are stored"], "seconds": 1.5, "elapsed": 0.9}
tool.write_data(folder, {"one": found, "four": {**found, "attentions": 0, "streaming": 0, "stored": [], "why": [], "seconds": 0.5, "elapsed": 0.5}})
made = tool.page(folder, tool.read_data(folder))
expect(made == tool.page(folder, dict(reversed(tool.read_data(folder).items()))), "the page depends on the order of its data")
for line in ("1 of 2 that must be there are there, 0 of 1 that should, and 1 beyond the list", "takes 0.7 s on two cores (median of 2; at most 0.9 s), 1.0 s of processor time (at most 1.5 s)", "Of their 2 attentions 1 are one kernel each, 0 of these in row blocks.",
             "| [one](../models/core/one.heed) | First, the. A 2001; B 2002 | 3 | 2 | 1/2 | `B*H*M*N + 1` | [<img src=\"masks/one.svg\" width=\"160\" alt=\"mask\">](masks/one.svg) | [oracle](../test/zoo/one.py), heed-check |",
             "| [four](../models/ffn/four.heed) | Fourth \\| last. E 2005 | 1 | 2 |  | none |  | heed-check |",
             "| [one](../models/core/one.heed) | 1/2 | rows are stored |", "| [one](../models/core/one.heed) | `B*H*M*N + 1` |", "## Not yet\n\n`two`."):
    expect(line in made, f"no {line!r} in\n{made}")
expect(len((folder / tool.DATA).read_text().splitlines()) == 4 and json.loads((folder / tool.DATA).read_text())["one"] == found, "a line a model")
finish()
