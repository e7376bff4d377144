"""Runs lit with the arguments given and says at the end how many seconds each suite (a folder of test/) took, and what came of it.

usage: suite-times.py LIT ARGUMENTS...      runs it
       suite-times.py --of RESULTS.json     sums the file that `lit -o` wrote

Seconds are those of single tests, added up: with two at once a run takes half of them. Exit code: lit's.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

GOOD = ("PASS", "FLAKYPASS", "XFAIL")
BAD = ("FAIL", "XPASS", "TIMEOUT", "UNRESOLVED")


def report(results):
    """A line per suite, slowest first, and the sum; last "N passed, N failed"."""
    seconds, tests = collections.Counter(), collections.Counter()
    for test in results["tests"]:
        if test["code"] in ("EXCLUDED", "SKIPPED", "UNSUPPORTED"):
            continue
        # "heed :: check/sizes.test"
        path = test["name"].split(" :: ", 1)[-1]
        suite = path.split("/")[0] if "/" in path else "."
        seconds[suite] += test["elapsed"] or 0
        tests[suite] += 1
    codes = collections.Counter(test["code"] for test in results["tests"])
    lines = ["seconds  tests  suite"]
    lines += [f"{seconds[suite]:7.1f}  {tests[suite]:5}  {suite}" for suite in sorted(tests, key=lambda s: (-seconds[s], s))]
    lines.append(f"{sum(seconds.values()):7.1f}  {sum(tests.values()):5}  all, one after another; {results['elapsed']:.1f} s passed")
    lines.append(f"{sum(codes[c] for c in GOOD)} passed, {sum(codes[c] for c in BAD)} failed"
                 + (f", {codes['UNSUPPORTED']} unsupported" if codes["UNSUPPORTED"] else ""))
    return "\n".join(lines)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--of":
        print(report(load(sys.argv[2])))
        return 0
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "results.json")
        code = subprocess.call([sys.argv[1], "-o", path, *sys.argv[2:]])
        # lit writes none where it found no test, and has said so.
        if os.path.exists(path):
            print(report(load(path)), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
