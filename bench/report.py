"""From a run's JSON to tables: on the screen, and docs/performance.md with docs/performance.json beside it."""
import json
import os
import shutil
import statistics
import sys

GROUPS = {"attention": "Attention", "small": "Small and odd sizes", "decode": "Decoding: one query", "gemm": "Dense layers",
          "rows": "Rows and elements", "linear": "Linear attention", "encoder": "Encoders"}


def floor(case, limit):
    """The least seconds that a machine of these limits needs."""
    peak, read, write = limit
    memory = 0.0 if case["cached"] else case["reads"] / read + case["writes"] / write
    return 1e-9 * max(case["flops"] / peak, memory)


def cell(case):
    """What a table says of one case."""
    row = {k: case[k] for k in ("name", "group", "threads")}
    row["absent"] = case["absent"]
    if "failed" in case:
        return {**row, "failed": case["failed"].split("\n")[0][:300]}
    best = {}
    for system in case["systems"]:
        times = [t for times in system["seconds"] for t in times]
        # The share of each round is that of its own peak.
        shares = [floor(case, limit) / statistics.median(times) for limit, times in zip(case["limits"], system["seconds"]) if times]
        best[system["system"]] = {"variant": system["variant"], "best": min(times), "median": statistics.median(times),
                                  "share": statistics.median(shares)}
    heed = best.pop("heed")
    peak, read, write = (statistics.median(column) for column in zip(*case["limits"]))
    bound = "FMA" if case["flops"] / peak >= floor(case, (peak, read, write)) * 0.999e9 else "memory"
    row.update(best=heed["best"], median=heed["median"], share=heed["share"], bound=bound, gate=case["gate"],
               compile=case["compile_seconds"], gflops=1e-9 * case["flops"] / heed["median"],
               gbytes=1e-9 * (case["reads"] + case["writes"]) / heed["median"], grows=case["grows"],
               rounded=case["rounded"], peers=best,
               n=case["params"].get("N", 0), intensity=case["flops"] / (case["reads"] + case["writes"]), limits=[peak, read, write])
    if best:
        peer = min(best.values(), key=lambda b: b["median"])
        row.update(peer=peer["variant"], peer_median=peer["median"], ratio=peer["median"] / heed["median"])
    return row


def summary(run):
    """The run without its single times."""
    known = {k: run[k] for k in ("version", "target", "rounds", "clock", "date", "minutes", "whole", "machine", "systems", "steady")}
    peaks = {}
    for case in run["cases"]:
        if case.get("limits"):
            peaks.setdefault(case["threads"], []).append([statistics.median(column) for column in zip(*case["limits"])])
    limits = {}
    for threads, found in peaks.items():
        peak, read, write = zip(*found)
        middle = statistics.median(peak)
        limits[str(threads)] = {"fma": middle, "read": statistics.median(read), "write": statistics.median(write),
                                "varies": (max(peak) - min(peak)) / middle}
    return {**known, "limits": limits, "cells": [cell(case) for case in run["cases"]]}


def judged(s):
    return all(limit["varies"] <= s["steady"] for limit in s["limits"].values())


CLIFF = 1.5  # the most that an odd size may cost beyond the next round one, per operation
TWICE = 1.9  # the least that two threads must bring a long attention


def cliffs(s):
    """(case, round case, factor) where an odd size falls off."""
    shares = {(c["name"], c["threads"]): c["gflops"] for c in s["cells"] if "failed" not in c}
    found = [(c["name"], c["rounded"], shares[c["rounded"], c["threads"]] / c["gflops"]) for c in s["cells"]
             if c.get("rounded") and (c["rounded"], c["threads"]) in shares]
    return [f for f in found if f[2] > CLIFF]


def speedups(s):
    """Case -> what all threads bring against one."""
    one = {c["name"]: c["median"] for c in s["cells"] if c["threads"] == 1 and "failed" not in c}
    return {c["name"]: one[c["name"]] / c["median"] for c in s["cells"] if c["threads"] > 1 and c["name"] in one and "failed" not in c}


def milliseconds(seconds):
    return f"{1e3 * seconds:.3f}" if seconds < 0.1 else f"{1e3 * seconds:.1f}"


def line(case):
    c = cell(case)
    if "failed" in c:
        return f"{c['name']} ({c['threads']}): failed: {c['failed']}"
    rival = f"; {c['peer']} {milliseconds(c['peer_median'])} ms, ratio {c['ratio']:.2f}" if "peer" in c else ""
    return f"{c['name']} ({c['threads']}): {milliseconds(c['median'])} ms, {c['share']:.2f} of {c['bound']}{rival}"


COLUMNS = ("case", "threads", "ms best", "ms median", "GFLOP/s", "GB/s", "of limit", "bound", "best peer", "its ms", "peer / Heed", "compile s")


def cells(c):
    if "failed" in c:
        return [c["name"], str(c["threads"]), "failed: " + c["failed"]] + [""] * (len(COLUMNS) - 3)
    mark = " (!)" if c["gate"] and c["share"] < c["gate"] else ""
    peer = [c["peer"], milliseconds(c["peer_median"]), f"{c['ratio']:.2f}" + (" (!)" if c["ratio"] < 1 else "")] if "peer" in c else ["-"] * 3
    return [c["name"], str(c["threads"]), milliseconds(c["best"]), milliseconds(c["median"]), f"{c['gflops']:.1f}", f"{c['gbytes']:.1f}",
            f"{c['share']:.2f}{mark}", c["bound"], *peer, f"{c['compile']:.1f}"]


def verdict(s):
    """Lines on the run as a whole."""
    found = []
    for threads, limit in s["limits"].items():
        found.append(f"{threads} thread{'s' if threads != '1' else ''}: {limit['fma']:.0f} GFLOP/s f32 multiply-add, {limit['read']:.1f} GB/s "
                     f"read, {limit['write']:.1f} GB/s written; the peak varied by {100 * limit['varies']:.1f} %")
    behind = [c for c in s["cells"] if c.get("ratio", 1) < 1]
    below = [c for c in s["cells"] if c.get("gate") and c["share"] < c["gate"]]
    if not judged(s):
        found.append(f"NOT JUDGED: the peak varied by more than {100 * s['steady']:.0f} %; repeat on a quiet machine")
    compared = [c for c in s["cells"] if "ratio" in c]
    found.append(f"{len(s['cells'])} cells; ahead of every peer in {len(compared) - len(behind)} of {len(compared)}; "
                 f"below its share of the limit in {len(below)} of {len([c for c in s['cells'] if c.get('gate')])}")
    for name, rounded, factor in cliffs(s):
        found.append(f"cliff: an operation of {name} costs {factor:.2f} times one of {rounded}")
    long = {c["name"] for c in s["cells"] if c["group"] == "attention" and c.get("n", 0) >= 1024}
    slow = {name: factor for name, factor in speedups(s).items() if name in long and factor < TWICE} if s["machine"]["threads"] == 2 else {}
    found += [f"two threads bring {name} only {factor:.2f} times the speed of one" for name, factor in slow.items()]
    return found


def absences(s):
    """Why somebody is not in a cell: (who, why) -> cells."""
    found = {}
    for c in s["cells"]:
        for who, why in c["absent"].items():
            found.setdefault((who, why), []).append(c["name"])
    return found


def text(s):
    """The table for a screen."""
    table = [list(COLUMNS)] + [cells(c) for c in s["cells"]]
    widths = [max(len(r[k]) for r in table if not r[2].startswith("failed")) for k in range(len(COLUMNS))]
    lines = ["  ".join(r[k].ljust(widths[k]) if k in (0, 7, 8) else r[k].rjust(widths[k]) for k in range(len(r))).rstrip() for r in table]
    lines += ["", f"{s['machine']['cpu']}; (!) marks what is behind a peer or below its share", *verdict(s)]
    lines += [f"{name}: {version}" for name, version in s["systems"].items()]
    lines += [f"not compared: {who}: {why} ({len(names)} cells, {names[0]})" for (who, why), names in absences(s).items()]
    return "\n".join(lines)


def every_system(found):
    """Medians in milliseconds of all who were measured: head and lines; nothing if that says no more than the best."""
    names = list(dict.fromkeys(p for c in found for p in c.get("peers", {})))
    if len(names) < 2:
        return None
    lines = []
    for c in found:
        if c.get("peers"):
            times = {"heed": c["median"], **{name: p["median"] for name, p in c["peers"].items()}}
            lines.append([c["name"], str(c["threads"])] + [milliseconds(times[x]) if x in times else "-" for x in ("heed", *names)])
    return ("case", "threads", "heed", *names), lines


def table(head, lines):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(x.replace("|", "/") for x in r) + " |" for r in lines]


def markdown(s):
    """docs/performance.md; nothing but `s` decides what it says."""
    out = ["<!-- Written by bench/run.py --report from performance.json beside it; not edited by hand. -->", "# Performance", "",
           f"Heed {s['version']}, target {s['target']}, on {s['machine']['cpu']} with {s['machine']['threads']} threads, {s['date']}: "
           f"{s['rounds']} interleaved rounds, medians of {s['clock']} time, {s['minutes']} minutes. How it is measured and read: [bench/](../bench/README.md).", ""]
    out += [f"- {x}" for x in verdict(s)] + [""]
    out += ["`of limit` is the least time that the machine's multiply-add peak and bandwidth allow, over the median; `peer / Heed` above 1: "
            "Heed is faster; (!) marks what is behind a peer or below its share.", ""]
    for group, title in GROUPS.items():
        found = [c for c in s["cells"] if c["group"] == group]
        if found:
            out += [f"## {title}", ""] + table(COLUMNS, [cells(c) for c in found]) + [""]
            if every_system(found):
                out += ["Median ms of every system, each at its best:", ""] + table(*every_system(found)) + [""]
    out += ["## Pictures", ""] + [f"![{x}](performance/{x}.svg)" for x in s["pictures"]] + [""] if s.get("pictures") else []
    out += ["## Systems", ""] + table(("system", "version, or why it is missing"), [(k, v) for k, v in s["systems"].items()]) + [""]
    missing = absences(s)
    if missing:
        out += ["## Not compared", ""] + table(("system", "why", "cells"), [(who, why, ", ".join(dict.fromkeys(names)))
                                                                        for (who, why), names in missing.items()]) + [""]
    return "\n".join(out)


def write(run, docs, pictures):
    """docs/performance.json, .md and the pictures."""
    s = summary(run)
    names = sorted(n[:-4] for n in os.listdir(pictures) if n.endswith(".svg"))
    s["pictures"] = names
    s = json.loads(json.dumps(s, default=str), parse_float=lambda x: float(f"{float(x):.5g}"))
    with open(os.path.join(docs, "performance.json"), "w", encoding="utf-8") as file:
        json.dump(s, file, indent=0)
        file.write("\n")
    with open(os.path.join(docs, "performance.md"), "w", encoding="utf-8") as file:
        file.write(markdown(s))
    shutil.rmtree(os.path.join(docs, "performance"), ignore_errors=True)
    os.makedirs(os.path.join(docs, "performance"))
    for name in names:
        shutil.copy(os.path.join(pictures, name + ".svg"), os.path.join(docs, "performance"))


if __name__ == "__main__":
    # report.py FOLDER: docs/performance.md from the run whose results lie there, without a new one.
    with open(os.path.join(sys.argv[1], "results.json"), encoding="utf-8") as source:
        write(json.load(source), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs"), sys.argv[1])
