"""Prints the ten files that took longest to compile in the last build, from ninja's own log."""
import sys

rows = {}
for line in open(f"{sys.argv[1]}/.ninja_log"):
    if line.startswith("#"):
        continue
    start, end, _, output, _ = line.rstrip("\n").split("\t")
    if output.endswith(".o"):
        rows[output] = (int(end) - int(start)) / 1000
for output, seconds in sorted(rows.items(), key=lambda row: -row[1])[:10]:
    print(f"{seconds:7.1f} s  {output}")
