"""Functions of more than 60 lines, each with the reason that its comment or docstring gives: "Long: ...". Exit 1 where one gives none, or where a reason stands at a short one."""
import ast
import re
import subprocess
import sys

LONGEST = 60
# Where a body ends in `{`, but no function begins.
NOT = re.compile(r"\s*((?:namespace|class|struct|enum|union|extern|typedef|switch|if|for|while|do|else)\b|case\b|default\b|return\b|using\b|template\b|#|//|\}|\{)")


def functions(lines):
    """(first line of the signature, first and last line of the body), numbers from 0. The code is formatted: a body ends where `}` stands below its signature."""
    for number, line in enumerate(lines):
        body = re.match(r"( *)\S.*\{$|\{$", line)
        if not body or "(" not in "".join(lines[max(0, number - 6):number + 1]):
            continue
        first = number
        while first and lines[first - 1].strip() and not re.search(r"[;{}]$|:$|^\s*(//|#)|\*/$", lines[first - 1]):
            first -= 1
        start = lines[first]
        indent = len(start) - len(start.lstrip())
        signature = " ".join(part.strip() for part in lines[first:number + 1])
        before = signature.split("(")[0]
        if indent > 4 or NOT.match(start) or "=" in before or "[" in before or "(" not in signature or not re.search(r"[\w>&*~] *[\w:~]*\w$|operator", before):
            continue
        last = next((k for k in range(number + 1, len(lines)) if re.match(f" {{0,{indent}}}[}}]", lines[k])), None)
        if last and lines[last] == " " * indent + "}":
            yield first, number, last, signature


def reason(lines, first):
    """What the comment above line `first` says after "Long:"."""
    text = ""
    while first and re.match(r"\s*(//|/?\*)", lines[first - 1]):
        first -= 1
        text = re.sub(r"^\s*(///?|/?\*+/?)\s?", "", lines[first]).strip() + " " + text
    found = re.search(r"Long: (.*)", text)
    return found and found[1].strip()


def compiled(text):
    """(line, name, length, reason) of each function of C or C++."""
    lines = text.split("\n")
    for first, number, last, signature in functions(lines):
        yield first + 1, signature.split("(")[0].split()[-1].lstrip("*&"), last - number + 1, reason(lines, first)


def interpreted(text):
    """The same of Python, where the docstring says why."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            why = re.search(r"Long: (.*)", ast.get_docstring(node) or "", re.S)
            yield node.lineno, node.name, node.end_lineno - node.lineno + 1, why and " ".join(why[1].split())


root = sys.argv[1]
files = subprocess.check_output(["git", "-C", root, "ls-files", "*.cpp", "*.c", "*.h", "*.py"], text=True).split()
wrong = []
for file in files:
    python = file.endswith(".py")
    if file.startswith("test/") and not python:
        continue
    for line, name, length, why in (interpreted if python else compiled)(open(f"{root}/{file}", encoding="utf-8").read()):
        if length > LONGEST:
            print(f"{file}:{line}: {name}: {length} lines: {why or '?'}")
            if not why:
                wrong.append(f"{file}:{line}: {name} has {length} lines, and its comment does not say why")
        elif why:
            wrong.append(f"{file}:{line}: {name} has {length} lines, and its comment says why it is long")
print("\n".join(wrong), file=sys.stderr)
sys.exit(1 if wrong else 0)
