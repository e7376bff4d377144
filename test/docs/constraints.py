# RUN: %python %s %S/../..
"""Every numbered constraint that the documents and the ops' descriptions state is broken by some test, which expects its number."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
NUMBER = re.compile(r"\b[a-z_]+(?:-[a-z]+)*\.c[0-9]+\b")
stated = {number for path in [*root.glob("docs/*.md"), *root.glob("dialects/**/*.td")] for number in NUMBER.findall(path.read_text())}
tested = {number for path in root.glob("test/**/*") if path.suffix in (".mlir", ".py", ".heed", ".test") for number in NUMBER.findall(path.read_text())}
assert len(stated) > 80, f"only {len(stated)} constraints found"
missing = sorted(stated - tested)
sys.exit(f"constraints that no test breaks: {', '.join(missing)}" if missing else 0)
