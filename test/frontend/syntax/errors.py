# RUN: %python %s %heed_bin/heed-syntax-test %S/Inputs %t
"""Every malformed input of Inputs/errors.txt gives exactly the messages below it; deep and long inputs give one
error. `errors.py TOOL INPUTS SCRATCH --update` writes the messages anew, to be read before they are committed."""
import os
import subprocess
import sys

tool, inputs, scratch = sys.argv[1:4]
os.makedirs(scratch, exist_ok=True)


def messages(source, name="x.heed"):
    data = source if isinstance(source, bytes) else source.encode()
    with open(os.path.join(scratch, name), "wb") as f:
        f.write(data)
    r = subprocess.run([tool, "--quiet", name], cwd=scratch, capture_output=True, timeout=20)
    return r.returncode, r.stderr.decode(errors="replace")


path = os.path.join(inputs, "errors.txt")
cases = [c.split("\n---\n") for c in open(path, encoding="utf-8").read().split("\n===\n")]
bad, written = 0, []
for source, *want in cases:
    code, got = messages(source + "\n")
    written.append(source + "\n---\n" + got.rstrip("\n"))
    if code != 1 or want != [got.rstrip("\n")]:
        bad += 1
        if "--update" not in sys.argv:
            print(f"SOURCE\n{source}\nEXPECTED\n{''.join(want)}\nFOUND (exit code {code})\n{got}")
if "--update" in sys.argv:
    open(path, "w", encoding="utf-8").write("\n===\n".join(written))

f = "fn f(x) = "
extreme = {
    "parentheses 300": (f + "(" * 300 + "x" + ")" * 300, "nesting deeper than 256"),
    "parentheses 20000": (f + "(" * 20000 + "x" + ")" * 20000, "nesting deeper than 256"),
    "minus": (f + "-" * 20000 + "x", "nesting deeper than 256"),
    "not": (f + "not " * 20000 + "x", "nesting deeper than 256"),
    "powers": (f + "x^" * 20000 + "x", "nesting deeper than 256"),
    "reductions": (f + "sum(j) " * 20000 + "x", "nesting deeper than 256"),
    "else if": ("fn f(x) {\n" + "if x { y = 1 } else " * 20000 + "{ y = 2 }\n}", "nesting deeper than 256"),
    "blocks": ("model f(x: f32[N]) {\n" + "for l in 0..2 {\n" * 20000, "nesting deeper than 256"),
    "sum of 260000": (f + " + ".join("x" * 260000), "an expression higher than 1024"),
    "a line of 1 MB": (f + "g(" + ", ".join("x" * 340000) + ") y", "expected an operator"),
    "not UTF-8": (b"fn f(x) = x\nfn g(x) = x\xff\n", "2:12: error: the file is not UTF-8: byte 0xff"),
    "a zero byte at the end": (b"fn f(x) = 1\0", "1:12: error: unexpected character U+0000"),
    "half a character": (b"fn f(x) = x # \xe2\x82", "the file is not UTF-8"),
}
for name, (source, want) in extreme.items():
    code, got = messages(source)
    if code != 1 or got.count("error:") != 1 or want not in got or len(got) > 1000:
        bad += 1
        print(f"{name}: exit code {code}, expected one error with {want!r}, found\n{got[:2000]}")
if len(cases) < 30:
    sys.exit("cases are missing")
sys.exit(f"{bad} of {len(cases) + len(extreme)} cases differ" if bad and "--update" not in sys.argv else 0)
