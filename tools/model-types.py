"""Writes the tables of docs/huggingface.md from what there is: the architectures in frontend/HuggingFace, their first comments, the entries of config.json
that they read, what they refuse, and the test checkpoints (test/huggingface/expected) by which they are compared with transformers.

model-types.py            writes the page anew
model-types.py --check    prints how it differs, and exits with 1 if it does (test/docs/huggingface.py)
"""
import difflib
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = "docs/huggingface.md"
FOLDER = "frontend/HuggingFace"
CASES = "test/huggingface/expected"
KINDS = {"decoder": "Decoders", "encoder-decoder": "Encoder-decoders", "encoder": "Encoders"}
# Names of our own, beside those that configs have.
OWN = {"rope_record"}


class Architecture:
    """What the sources say of one model_type."""

    def __init__(self, root, path):
        self.type, self.path = path.stem, path.relative_to(root)
        text = path.read_text(encoding="utf-8")
        comment = " ".join(line.lstrip("# ") for line in re.match(r"(?:#.*\n)+", text)[0].splitlines())
        self.name = comment.split(":")[0]
        self.papers = re.findall(r'(?:^|[.;] )([A-Z][^.;"]*?(?: et al\.)?[^.;"]* \d{4}), "([^"]+)"', comment)
        model = text[re.search(r"^model ", text, re.M).start():]
        self.entries = re.findall(r"^  entry (\w+)\((.*?)\) \{$", model, re.M)
        self.lines = sum(1 for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
        self.reads = list(dict.fromkeys(name for one in [text, *imported_texts(path)] for name in config_names(one)))
        cases = sorted((root / CASES / self.type).iterdir(), key=lambda case: (case.name != "default", case.name))
        read = {case.name: json.loads((case / "case.json").read_text()) for case in cases}
        self.compared = [name for name, case in read.items() if "error" not in case]
        self.kind = read["default"]["kind"]
        (self.library,) = json.loads((root / CASES / self.type / "default/config.json").read_text())["architectures"]
        self.refuses = list(dict.fromkeys(re.sub(r"\{.*?\}", "…", message) for message in re.findall(r'error\("(.*?)"\)', text)))


def imported_texts(path, seen=None):
    """The texts of all files that a file imports."""
    seen, texts = {path.resolve()} if seen is None else seen, []
    for name in re.findall(r'^import "(.*?)"', path.read_text(encoding="utf-8"), re.M):
        other = (path.parent / name).resolve()
        if other not in seen:
            seen.add(other)
            texts += [other.read_text(encoding="utf-8"), *imported_texts(other, seen)]
    return texts


def config_names(text):
    """The entries that a file's `config` lines name; of records, `rope_scaling.factor`, the record."""
    statements = re.findall(r'^config "config.json",?(.*(?:\n +.*)*)', text, re.M)
    names = [name for statement in statements for name in re.findall(r"(?:^|,|\n)\s*([a-z_]\w*)(?:\.\w+)* = ", statement)]
    return [name for name in names if name not in OWN]


def table(head, rows):
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in [head, ["---"] * len(head), *rows]) + "\n"


def code(names):
    return " ".join(f"`{name}`" for name in names)


def page(root):
    """{name of a block: its text}"""
    found = [Architecture(root, path) for path in sorted((root / FOLDER / "architectures").glob("*.heed"))]
    types = f"{len(found)} values of `model_type`, {sum(len(one.compared) for one in found)} test checkpoints that are compared with transformers.\n"
    for kind, title in KINDS.items():
        rows = [[f"[{one.type}](../{one.path})", one.library, code(entry for entry, _ in one.entries), str(one.lines), ", ".join(one.compared),
                 "; ".join(f"{who}, *{name}*" for who, name in one.papers)] for one in found if one.kind == kind]
        if rows:
            types += f"\n### {title}\n\n" + table(["model_type", "as in transformers", "entries", "lines", "compared cases", "source"], rows)
    rows = [[one.type, code(one.reads), "; ".join(one.refuses)] for one in found]
    return {"model types": types, "configs": table(["model_type", "entries of config.json that are read", "what is refused"], rows)}


def written(text, blocks):
    """The page with every block between `<!-- made: NAME -->` and `<!-- end -->` written anew."""
    return re.sub(r"(<!-- made: (.*?) -->\n).*?(<!-- end -->)", lambda found: f"{found[1]}\n{blocks[found[2]]}\n{found[3]}", text, flags=re.S)


def main():
    old = (ROOT / PAGE).read_text(encoding="utf-8")
    new = written(old, page(ROOT))
    if "--check" not in sys.argv:
        (ROOT / PAGE).write_text(new, encoding="utf-8")
    elif new != old:
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), PAGE, "the sources"))
        raise SystemExit("`python tools/model-types.py` writes it anew")


if __name__ == "__main__":
    main()
