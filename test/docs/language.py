"""docs/language.md: every example compiles; every wrong example gives exactly the messages that stand below it.

REQUIRES: heedc
RUN: rm -rf %t && mkdir -p %t && %python %s %heed_src/docs/language.md %heed_bin/heedc %t

`language.py DOCUMENT HEEDC SCRATCH --update` writes the messages anew, to be read before they are committed.
"""
import os
import re
import sys

from runs import expect, finish, run

document, heedc, folder = sys.argv[1:4]
path = os.path.join(folder, "x.heed")


def compile(source):
    """Exit code and messages, each as line:column: kind: text."""
    with open(path, "w") as file:
        file.write(source)
    done = run(heedc, "--emit=attn", "-o", os.path.join(folder, "x.mlir"), path)
    lines = [line[len(path) + 1:] for line in done.stderr.splitlines() if line.startswith(path + ":")]
    return done.returncode, "\n".join(lines), done.stderr


text = open(document).read()
blocks = list(re.finditer(r"^```(heed|heed-error|heed-warning)\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", text, re.S | re.M))
right = wrong = 0
for block in blocks:
    kind, source, messages = block.groups()
    where = f"{document}:{text[:block.start()].count(chr(10)) + 2}"
    code, found, everything = compile(source)
    if kind == "heed":
        right += 1
        expect(code == 0 and not found, f"{where}: exit code {code}, expected it to compile\n{source}{everything}")
        continue
    wrong += 1
    expect(messages is not None, f"{where}: no messages follow")
    expect(code == (kind == "heed-error") and found == (messages or "").rstrip("\n"),
           f"{where}: exit code {code}\n{source}EXPECTED\n{messages}FOUND\n{everything}")
    if "--update" in sys.argv:
        text = text.replace(f"{source}```\n```text\n{messages}", f"{source}```\n```text\n{found}\n")
if "--update" in sys.argv:
    open(document, "w").write(text)
fences = len(re.findall(r"^```heed", text, re.M))
expect(fences == right + wrong and right > 30 and wrong > 35, f"{fences} examples, of which {right} and {wrong} were read")
print(f"{right} examples, {wrong} wrong ones")
finish()
