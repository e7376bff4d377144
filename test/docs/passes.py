"""docs/passes.md: every pass shows IR before and after, and does just that to it; or IR that it refuses, and says so.

REQUIRES: heed-opt
RUN: %python %s %heed_src/docs/passes.md %heed_bin/heed-opt

The IR is compared as heed-opt prints it after --canonicalize --cse, so names, spaces and constants nobody reads do not
count. Where "after" has `...`, what stands around it must be printed in this order, with any names.
"""
import re
import subprocess
import sys

from runs import expect, finish

document, opt = sys.argv[1:3]
text = open(document, encoding="utf-8").read()


def printed(source, what, *passes):
    done = subprocess.run([opt, *passes, "--canonicalize", "--cse"], input=source, capture_output=True, text=True, timeout=300)
    expect(done.returncode == 0, f"{what}: exit code {done.returncode}\n{source}\n{done.stderr}")
    return done.stdout


def nameless(source):
    """One space between words, and every SSA name alike."""
    return re.sub(r"\s+", " ", re.sub(r"%[\w#:]*\w", "%", source)).strip()


def holds(source, pieces):
    at = 0
    for piece in pieces:
        at = source.find(piece, at)
        if at < 0:
            return f"not found, or not in this order: {piece}"
        at += len(piece)
    return ""


sections = re.findall(r"^### `-(\S+)`\n(.*?)(?=^##|\Z)", text, re.S | re.M)
for name, body in sections:
    refused = re.findall(r"^```mlir\n(.*?)^```\nwith\n```text\n(.*?)^```$", body, re.S | re.M)
    changed = re.findall(r"^```mlir\n(.*?)^```\nbecomes\n```mlir\n(.*?)^```$", body, re.S | re.M)
    expect(refused or changed, f"{name}: no IR before and after, nor IR that it refuses")
    expect(len(re.findall("```mlir", body)) == len(refused) + 2 * len(changed), f"{name}: a block of IR that is not compared")
    for source, message in refused:
        done = subprocess.run([opt, "--" + name], input=source, capture_output=True, text=True, timeout=300)
        errors = re.findall(r"error: (.*)", done.stderr)
        expect(done.returncode == 1 and errors[:1] == [message.strip()],
               f"{name}: exit code {done.returncode}\nEXPECTED\n{message}FOUND\n{done.stderr}")
        printed(source, name)
    for before, after in changed:
        found = printed(before, name, "--" + name)
        if "..." in after:
            missing = holds(nameless(found), [nameless(piece) for piece in after.split("...")])
            expect(not missing, f"{name}: {missing}\nFOUND\n{found}")
        else:
            expected = printed(after, f"{name}, after")
            expect(found == expected, f"{name}:\nEXPECTED\n{expected}\nFOUND\n{found}")
        expect(found != printed(before, name), f"{name}: it does nothing to its example")

help_text = subprocess.run([opt, "--help"], capture_output=True, text=True, timeout=300).stdout
known = set(re.findall(r"^ {6}--((?:attn|halide|reference)-\S+) +-", help_text, re.M))
expect(known == {name for name, _ in sections}, f"heed-opt has {sorted(known)}")
print(f"{len(sections)} passes")
finish()
