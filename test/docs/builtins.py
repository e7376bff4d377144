# RUN: %python %s %heed_src %heed_bin/heed-frontend-test
"""docs/language.md lists the built-in functions that the front end's table has, in its order, and test/e2e/builtins.py tests each of them."""
import pathlib
import re
import sys

from runs import expect, finish, run

root = pathlib.Path(sys.argv[1])
table = run(sys.argv[2], "--builtins").stdout.split()
section = (root / "docs/language.md").read_text().split("\n## Built-in functions\n")[1].split("\n## ")[0]
listed = []
for row in re.findall(r"^\| (`.*?) \|(.*)\|$", section, re.M):
    if row[1].strip() != "conversions":
        listed += [(name, arguments.count(",") + 1) for name, arguments in re.findall(r"`(\w+)((?:\(.*?\))?)`", row[0])]
written = [f"{name}/{arity}" for name, arity in listed]
expect(len(table) > 25, f"only {len(table)} rows: {table}")
expect(written == table, f"docs/language.md lists\n{written}\nthe table has\n{table}")
numbers = (root / "test/e2e/builtins.py").read_text()
for name in (row.split("/")[0] for row in table):
    if name not in ("extent", "ilog2", "error", "has", "kind"):  # static: see test/e2e/language.py, test/frontend/{config.py,errors/error-call.heed}
        expect(f'"{name}": (' in numbers, f"test/e2e/builtins.py does not test {name}")
finish()
