"""python test/generator/never_fired.py LOG..: what no model of these runs (of `--backend=explain`) made: sentences of the passes' remarks and
ops of the halide dialect."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# What stands in these is no remark.
OTHER = re.compile(r"emit(Op)?Error|assert\(|llvm_unreachable|report_fatal|notifyMatchFailure|mutated\(|cl::|Statistic|getDescription|attn\.|RequireOp")


def literals(text):
    """Neighbouring literals as one."""
    for m in re.finditer(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', text):
        yield m.start(), "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', m[0]))


def sentences():
    """(file, sentence) of what may be said: literals of three words and more in files that make remarks, or that give reasons to them."""
    for file in sorted((ROOT / "passes").rglob("*.cpp")):
        if file.stem.startswith("Verify") or file.stem == "Axioms":
            continue
        code = re.sub(r"//[^\n]*", "", file.read_text())
        for at, text in literals(code):
            before = code[max(0, at - 90):at].rsplit(";", 1)[-1]
            if len(re.findall(r"[a-z]+", text)) >= 3 and " " in text.strip() and not OTHER.search(before):
                yield str(file.relative_to(ROOT)), text


def words(text):
    """Without what a message puts in: names and numbers."""
    return " ".join(re.findall(r"[A-Za-z][a-z']*(?:-[a-z]+)*", text))


def main(logs):
    said, ops = set(), set()
    for log in logs:
        for line in pathlib.Path(log).read_text().splitlines():
            m = re.match(r" *\d+ (?:op halide\.(\w+)|[\w-]+: \w+: (.*))$", line)
            if m and m[1]:
                ops.add(m[1])
            elif m:
                said.add(words(m[2]))
    said = "\n".join(said)
    for file, text in sentences():
        if words(text) not in said:
            print(f"{file}: {text}")
    known = set()
    for file in (ROOT / "dialects/Halide").glob("*.td"):
        known |= set(re.findall(r'<"([a-z_]+)"', file.read_text()))
    print("halide ops:", ", ".join(sorted(known - ops)) or "none")


main(sys.argv[1:])
