"""docs/zoo.md: which systems of the literature are in models/, and what the compiler makes of each.

zoo-page.py                       writes the page from models/*.csv, the models and docs/zoo.json
zoo-page.py --measure HEEDC [KEY..]   compiles these models, without keys those whose seconds are not known, and writes docs/zoo.json, too;
                                  `all` for all. Kernels are compiled anew, so that the seconds mean something.
zoo-page.py --count HEEDC [KEY..]     the same of all or these, without compiling kernels: quick, and the seconds stay what they are
zoo-page.py --masks HEEDC [KEY..]     draws the masks of all or these anew, docs/masks/<key>.svg, and writes the page

models/zoo.csv lists the systems of the literature by key, models/extra.csv those beyond that list. test/docs/zoo.py holds the page to what this makes of
its inputs, and every model to a row, a summary and an oracle.
"""
import csv
import json
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = "docs/zoo.json"
PAGE = "docs/zoo.md"
MASKS = "docs/masks"
# What the pictures of masks are drawn with: data that a mask depends on, sizes where the usual ones show little. Lengths are of 48 of 64 positions.
LENGTHS = ("length", "length1", "length2", "t_length", "x_length", "count")
CACHED = ["--set=N=32", "--set=C=64", "--input=len=16"]
DRAWN_WITH = {
    "adaptive-span": ["--input=z=8"],
    "bigbird": ["--input=random=5,11"],
    "dalle": ["--set=T=64"],
    **dict.fromkeys(["kv-cache-attention", "window-kv-cache", "mqa", "gpt2", "llama", "decoder-only", "greedy-decoding", "beam-search", "learned-stop"], CACHED),
    "paged-attention": ["--set=N=48", "--set=K=4", "--input=len=16"],
    "transformer-xl-memory": ["--set=N=32", "--set=M=32", "--input=known=24"],
    "etc-global-local": ["--set=G=16", "--set=N=48"],
    "flamingo": ["--input=ids=" + ",".join("0" if n % 16 == 3 else "1" for n in range(64))],
    "global-attention": ["--input=internal=0"],
    "kv-pooling": ["--set=N=64", "--set=M=64"],
    "longformer": ["--set=H=2", "--input=dilation=1,2", "--input=global=1,1,0"],
    "luong-local": ["--input=S=48"],
    "m6": ["--input=prefix=24"],
    "mixed-attention": ["--set=H=4", "--input=special=1,0", "--input=window=8"],
    "band-attention": ["--input=window=8"],
    "strided-attention": ["--set=N=48"],
    "span-bounds-attention": ["--input=left=" + ",".join(str(n // 12 * 12) for n in range(64)), "--input=right=" + ",".join(str(n // 12 * 12 + 15) for n in range(64))],
    "varlen-packed-attention": ["--input=seg=" + ",".join(str(int(n > 20) + int(n > 35)) for n in range(64))],
    "visualbert": ["--input=words=40", "--input=regions=48"],
}
# Oracles that lie elsewhere than in test/zoo/<key>.py: that of real weights.
ELSEWHERE = {"bert": "models/whole-model/minilm/oracle.py"}


def systems(root):
    """key -> row of the lists, in their order."""
    rows = {}
    for name in ("zoo.csv", "extra.csv"):
        with open(root / "models" / name, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["key"] in rows:
                    raise SystemExit(f"models/{name}: the key '{row['key']}' stands twice")
                rows[row["key"]] = row
    return rows


def models(root):
    """key -> path of the model; what lies in lib/ is imported by models and is none."""
    return {path.stem: path for path in sorted(root.glob("models/*/*.heed")) if path.parent.name != "lib"}


def oracle(root, key):
    """The oracle's path below the root, or none."""
    path = ELSEWHERE.get(key, f"test/zoo/{key}.py")
    return path if (root / path).exists() else None


def lines(path):
    """What a reader has to read: lines that are neither empty nor comments."""
    return sum(1 for line in path.read_text(encoding="utf-8").splitlines() if line.strip() and not line.lstrip().startswith("#"))


def measure(root, heedc, path, kernels=True):
    """The summary of one model, none if it does not compile; without its kernels there are no seconds in it."""
    command = [heedc, path.relative_to(root), "--no-cache", "--explain=json", "-o", "/dev/null", "--emit=obj" if kernels else "--emit=llvm"]
    if (path.parent / "check").is_dir():
        command += ["--model-dir", (path.parent / "check").relative_to(root)]
    start, before = time.perf_counter(), processor_seconds()
    done = subprocess.run([str(word) for word in command], cwd=root, capture_output=True, text=True)
    if done.returncode:
        print(f"{path}: {done.stderr}")
        return None
    seconds = {"seconds": round(processor_seconds() - before, 1) if kernels else None,
               "elapsed": round(time.perf_counter() - start, 1) if kernels else None}
    remarks = [json.loads(line) for line in done.stderr.splitlines()]
    # Of several entries the one that runs most kernels; attentions are those of all of them in each summary.
    whole = max((r for r in remarks if r["kind"] == "summary"), key=lambda r: r["kernels"])
    # Why sums were not raised, where there are attentions that none became.
    reasons = [r["message"] for r in remarks if r["kind"] == "declined" and (r["pass"] == "attn-choose-algorithm" or r["name"] == "attention")]
    fused = whole["streaming"] + whole["rowBlock"] == whole["attentions"]
    return {**{key: whole[key] for key in ("kernels", "attentions", "streaming", "rowBlock", "stored", "flops")},
            "why": [] if fused else sorted(set(reasons)), **seconds}


def inputs(path):
    """Names of the inputs of a file's last model, which is the one that is compiled, or of its first entry, whose masks are drawn."""
    text = path.read_text(encoding="utf-8")
    found = re.search(r"^(?:model|  entry) \w+\((?!;)(.*?)\)", text[[m.start() for m in re.finditer("^model", text, re.M)][-1]:], re.S | re.M)
    return re.findall(r"\w+", re.sub(r":[^,\[;]*(\[[^]]*\])?", "", found[1].split(";")[0]))


def draw(root, heedc, path):
    """The SVG of a model's masks, none where it has none."""
    command = [heedc, path.relative_to(root), "--emit=mask", "--target=x86-64-v4", *DRAWN_WITH.get(path.stem, [])]
    command += [f"--input={name}=48" for name in inputs(path) if name in LENGTHS]
    if (path.parent / "check").is_dir():
        command += ["--model-dir", (path.parent / "check").relative_to(root)]
    done = subprocess.run([str(word) for word in command], cwd=root, capture_output=True, text=True)
    if done.returncode and " so it has no mask" not in done.stderr and " has no mask: " not in done.stderr:
        raise SystemExit(f"{path}: {done.stderr}")
    return done.stdout or None


def write_masks(root, heedc, keys):
    there = models(root)
    (root / MASKS).mkdir(exist_ok=True)
    for key in keys or there:
        picture = root / MASKS / f"{key}.svg"
        text = draw(root, heedc, there[key])
        if text:
            picture.write_text(text, encoding="utf-8")
            print(f"{MASKS}/{key}.svg: {len(text)} bytes", flush=True)
        else:
            picture.unlink(missing_ok=True)


def picture(root, key):
    """How the page shows it: what is clicked on is the picture in its own size."""
    path = f"{MASKS}/{key}.svg"
    return f'[<img src="masks/{key}.svg" width="160" alt="mask">](masks/{key}.svg)' if (root / path).exists() else ""


def processor_seconds():
    """Of all processes that have ended: what else the machine does has no say."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write_data(root, data):
    """One line for each model, so that two who add models do not meet."""
    text = ",\n".join(f"{json.dumps(key)}: {json.dumps(data[key])}" for key in sorted(data))
    (root / DATA).write_text("{\n" + text + "\n}\n", encoding="utf-8")


def read_data(root):
    return json.loads((root / DATA).read_text(encoding="utf-8")) if (root / DATA).exists() else {}


def table(head, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]) + "\n"


def attentions(found):
    if not found["attentions"]:
        return ""
    return f"{found['streaming'] + found['rowBlock']}/{found['attentions']}" + (" in row blocks" if found["rowBlock"] else "")


def largest(found):
    return f"`{found['stored'][0]}`" if found["stored"] else "none"


def pairs(found):
    """Those tensors between kernels that hold a number for pairs of positions: their size has two of the dims that count positions."""
    def is_pairs(size):
        return any(sum(factor in "NMTSL" for factor in term.split("*")) >= 2 for term in re.split(r" [+-] ", size))
    return [size for size in found["stored"] if is_pairs(size)]


def row(root, system, path, found):
    title = system["name"].replace("|", "\\|")
    check = oracle(root, system["key"])
    return [f"[{system['key']}](../{path.relative_to(root)})", f"{title}. {system['citation']}", str(lines(path)), str(found["kernels"]), attentions(found), largest(found), picture(root, system["key"]),
            f"[oracle](../{check}), heed-check" if check else "heed-check"]


def unfused(data, there, root):
    """What is not one kernel that stores no scores, and why."""
    text, rows = "", [[f"[{k}](../{there[k].relative_to(root)})", attentions(f), "; ".join(f["why"]).replace("|", "\\|")] for k, f in data.items() if f["why"]]
    if rows:
        text += "\n## Attentions that are more than one kernel\n\n" + table(["key", "fused", "what heedc says"], rows)
    rows = [[f"[{k}](../{there[k].relative_to(root)})", ", ".join(f"`{size}`" for size in pairs(f))] for k, f in data.items() if pairs(f)]
    if rows:
        text += "\n## Numbers of pairs of positions that are stored\n\nTold by the names of sizes: two of N, M, T, S, L in one product.\n\n" + table(["key", "elements"], rows)
    return text


def page(root, data):
    """The text of docs/zoo.md."""
    listed, there = systems(root), models(root)
    first = {r: [k for k, s in listed.items() if s["tier"] == "1" and s["relevance"] == r] for r in ("must", "should")}
    present = {r: [k for k in keys if k in there] for r, keys in first.items()}
    extra = [k for k in there if listed.get(k, {}).get("relevance") == "extra"]
    seconds = [found["seconds"] for found in data.values() if found["seconds"] is not None]
    text = f"""# The zoo

Written by `tools/zoo-page.py` from `models/zoo.csv`, `models/extra.csv`, the models and `docs/zoo.json`.

Of the systems of the literature that have no state, no selection by data and no control flow by data, {len(present["must"])} of {len(first["must"])} that must be there \
are there, {len(present["should"])} of {len(first["should"])} that should, and {len(extra)} beyond the list.
Each is one file of equations, compared with float64 NumPy (`test/zoo/`) and with the reference backend (`heed-check`), and each compiles for all sizes at once.

`lines` counts the file without comments. `kernels` are those that one call runs, of a model of several entries the one that runs most. `attentions` says how many of them are one kernel each that stores no scores, of how \
many there are; \
`in row blocks`: all scores of a few queries lie in the memory of the thread that computes them. The largest intermediate is what one kernel writes and another \
reads, in elements; results are none. `mask` is what `heedc --emit=mask` draws: tiles of queries and keys that are left out, evaluated per element, computed \
without a mask.
"""
    if seconds:
        elapsed = [found["elapsed"] for found in data.values() if found["seconds"] is not None]
        text += f"To compile one takes {statistics.median(elapsed):.1f} s on two cores (median of {len(seconds)}; at most {max(elapsed):.1f} s), \
{statistics.median(seconds):.1f} s of processor time (at most {max(seconds):.1f} s), kernels included.\n"
    every, streaming, blocks = (sum(found[what] for found in data.values()) for what in ("attentions", "streaming", "rowBlock"))
    text += f"Of their {every} attentions {streaming + blocks} are one kernel each, {blocks} of these in row blocks.\n"
    groups = {}
    for key, system in listed.items():
        if key in there and key in data:
            groups.setdefault(system["group"], []).append(row(root, system, there[key], data[key]))
    for group, rows in groups.items():
        text += f"\n## {group}\n\n" + table(["key", "system", "lines", "kernels", "attentions", "largest intermediate", "mask", "checked by"], rows)
    text += unfused({key: data[key] for key in listed if key in there and key in data}, there, root)
    missing = [k for k in first["must"] if k not in there]
    if missing:
        text += "\n## Not yet\n\n" + ", ".join(f"`{key}`" for key in missing) + ".\n"
    return text


def main(arguments):
    data, there, failed = read_data(ROOT), models(ROOT), []
    if len(arguments) > 1 and arguments[0] in ("--measure", "--count"):
        kernels = arguments[0] == "--measure"
        data = {key: found for key, found in data.items() if key in there}
        known = {key: {what: found.get(what) for what in ("seconds", "elapsed")} for key, found in data.items()}
        keys = arguments[2:] or [key for key in there if not kernels or known.get(key, {}).get("seconds") is None]
        for key in there if keys == ["all"] else keys:
            found = measure(ROOT, pathlib.Path(arguments[1]).resolve(), there[key], kernels)
            if not found:
                failed.append(key)
                continue
            data[key] = found if kernels else {**found, **known.get(key, {})}
            print(key, data[key], flush=True)
            write_data(ROOT, data)
    elif len(arguments) > 1 and arguments[0] == "--masks":
        write_masks(ROOT, pathlib.Path(arguments[1]).resolve(), arguments[2:])
    elif arguments:
        raise SystemExit(__doc__)
    (ROOT / PAGE).write_text(page(ROOT, data), encoding="utf-8")
    if failed:
        raise SystemExit(f"not compiled: {', '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
