"""docs/performance.md, with docs/performance.json and the pictures beside it: one run written down. Its cells of the zoo are in
docs/zoo-performance.md and .json, those of recurrences in docs/recurrence-performance.*, of generation in docs/generate-performance.*; a run of one of them
leaves the other pages as they are."""
import json
import os
import shutil
import sys

import generate_page
import report


def every_system(found):
    """Medians in milliseconds of all who were measured: head and lines; nothing if that says no more than the best."""
    names = list(dict.fromkeys(p for c in found for p in c.get("peers", {})))
    if len(names) < 2:
        return None
    lines = []
    for c in found:
        if c.get("peers"):
            times = {name: report.milliseconds(p["median"]) + ("" if p["raced"] else " *") for name, p in c["peers"].items()}
            lines.append([c["name"], str(c["threads"]), report.milliseconds(c["median"])] + [times.get(x, "-") for x in names])
    return ("case", "threads", "heed", *names), lines


def beside_prototypes(found):
    """(case, threads, which, ratio, verdict) where a prototype was raced."""
    return [[c["name"], str(c["threads"]), c["prototype"]["peer"], report.ratio(c["prototype"]), report.says(c["prototype"])]
            for c in found if "prototype" in c]


def table(head, lines):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(x.replace("|", "/") for x in r) + " |" for r in lines]


TITLES = {"performance": "Performance", "zoo-performance": "Performance of the zoo", "recurrence-performance": "Performance of recurrences",
          "generate-performance": "Performance of generation"}
#: Groups whose page is their own.
OWN_PAGE = {"zoo": "zoo-performance", "recurrence": "recurrence-performance", "generate": "generate-performance"}


def markdown(s, name="performance"):
    """Nothing but `s` decides what it says."""
    cores = len(s["machine"]["cores"])
    out = [f"<!-- Written by bench/run.py --report from {name}.json beside it; not edited by hand. -->", f"# {TITLES[name]}", ""]
    out += [f"- {x}" for x in report.verdict(s)] + [""]
    out += [f"Heed {s['version']}, commit {s['commit']}, target {s['target']}, on {s['machine']['cpu']} with {cores} core{'s' if cores > 1 else ''}: one run, "
            f"{s['began']} to {s['ended']}, {s['minutes']:g} minutes of it measuring. Intervals are 95 %, of {s['clock']} time. "
            "How it is measured and read: [bench/](../bench/README.md).", "",
            "`peer / Heed`: the best peer's time over Heed's with its interval, above 1 Heed is faster; the verdict goes by it alone. `of limit`: the least "
            "time that the machine's multiply-add peak and bandwidth allow, over Heed's; it informs, for it depends on a machine's neighbours. "
            "`gate`: what a change must not fall below; `goal`: what is aimed at, of the share and of the ratio; (!) marks what is not reached.", ""]
    for group, title in report.GROUPS.items():
        found = [c for c in s["cells"] if c["group"] == group]
        if found:
            out += [f"## {title}", ""] + table(report.COLUMNS, [report.cells(c) for c in found]) + [""]
            if beside_prototypes(found):
                out += ["Beside the prototypes in Halide, above 1 Heed is faster:", ""]
                out += table(("case", "threads", "prototype", "prototype / Heed", "verdict"), beside_prototypes(found)) + [""]
            if every_system(found):
                out += ["Median ms of every system, each at its best (* from a first trial: too slow to be raced):", ""] + table(*every_system(found)) + [""]
            if group == "generate":
                out += generate_page.sections(found, table)
    slow = report.below(s)
    if slow:
        out += ["## Below half of the limit", "", "Kernels that take a tenth of the time or more; the limit counts products and sums of the mathematics, no "
                "exponentials and no bytes between kernels.", ""] + table(("case", "of limit", "kernels, share of the time"), slow) + [""]
    doubts = report.doubts(s)
    if doubts:
        out += ["## Unjudged", ""] + table(("case", "threads", "why", "blocks rejected"), doubts) + [""]
    out += ["## Pictures", ""] + [f"![{x}](performance/{x}.svg)" for x in s["pictures"]] + [""] if s.get("pictures") else []
    out += ["## Systems", ""] + table(("system", "version, or why it is missing"), list(s["systems"].items())) + [""]
    missing = report.absences(s)
    if missing:
        out += ["## Not compared", ""] + table(("system", "why", "cells"), [(who, why, ", ".join(dict.fromkeys(names)))
                                                                        for (who, why), names in missing.items()]) + [""]
    return "\n".join(out)


def write_page(s, docs, name):
    s = json.loads(json.dumps(s, default=str), parse_float=lambda x: float(f"{float(x):.5g}"))
    with open(os.path.join(docs, name + ".json"), "w", encoding="utf-8") as file:
        json.dump(s, file, indent=0)
        file.write("\n")
    with open(os.path.join(docs, name + ".md"), "w", encoding="utf-8") as file:
        file.write(markdown(s, name))


def write(run, docs, pictures):
    """The pages that the run has cells for, and the pictures of the first."""
    for group, name in OWN_PAGE.items():
        cases = [c for c in run["cases"] if c["group"] == group]
        if cases:
            write_page(report.summary({**run, "cases": cases}), docs, name)
    others = [c for c in run["cases"] if c["group"] not in OWN_PAGE]
    if not others:
        return
    names = sorted(n[:-4] for n in os.listdir(pictures) if n.endswith(".svg"))
    write_page({**report.summary({**run, "cases": others}), "pictures": names}, docs, "performance")
    shutil.rmtree(os.path.join(docs, "performance"), ignore_errors=True)
    os.makedirs(os.path.join(docs, "performance"))
    for name in names:
        shutil.copy(os.path.join(pictures, name + ".svg"), os.path.join(docs, "performance"))


if __name__ == "__main__":
    # page.py FOLDER: the pages of docs/ from the run whose results lie there, without a new one.
    with open(os.path.join(sys.argv[1], "results.json"), encoding="utf-8") as source:
        write(json.load(source), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs"), sys.argv[1])
