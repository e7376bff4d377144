"""docs/language.md: every example that compiles also runs, and both backends agree on it, at drawn sizes and edge cases.

REQUIRES: heed-check
RUN: rm -rf %t && mkdir -p %t && %python %s %heed_src/docs/language.md %heed_bin/heed-check %t
"""
import os
import re
import sys

from runs import expect, finish, run

document, check, folder = sys.argv[1:4]
text = open(document).read()
examples = re.findall(r"^```heed(?:-warning)?\n(.*?)^```\n", text, re.S | re.M)
for k, source in enumerate(examples):
    with open(os.path.join(folder, f"example-{k:02}.heed"), "w") as file:
        file.write(source)
done = run(check, "--draws=3", folder)
agree = re.findall(r"^ *(\d+) inputs agree", done.stdout, re.M)
entries = sum(max(len(re.findall(r"^  entry ", source, re.M)), 1) for source in examples)
expect(done.returncode == 0 and len(agree) == entries > 30 and all(int(n) > 20 for n in agree),
       f"{entries} entries, {len(agree)} agree\n{done.stdout}{done.stderr}")
finish()
