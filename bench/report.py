"""From a run's JSON to what is said of each cell, and the table for a screen. page.py makes docs/performance.md of the same."""
import statistics

import measure
from blocks import best, log_ratio
from estimate import Series
from goals import goal

GROUPS = {"attention": "Attention", "small": "Small and odd sizes", "decode": "Decoding: one query", "gemm": "Dense layers",
          "rows": "Rows and elements", "linear": "Linear attention", "encoder": "Encoders", "zoo": "Systems of the zoo",
          "recurrence": "Recurrences", "generate": "Generation"}
VERDICTS = ("ahead", "tie", "behind", "unjudged", "alone")
CLIFF = 1.5  # the most that an odd size may cost beyond the next round one, per operation
TWICE = 1.9  # the least that two threads must bring a long attention


def series(row, within):
    """A row's blocks again as they came in."""
    found = Series(within)
    for block in row["blocks"]:
        found.add(log_ratio(block), block["why"])
    found.look()
    return found


def against(rows, within):
    """What the race with these rows says: the one with the least ratio, its interval, the verdict."""
    raced = {row["variant"]: series(row, within) for row in rows if row["blocks"]}
    name = best(raced)
    if name is None:
        return None
    found = raced[name]
    word, why = found.verdict("ahead", "behind")
    ratio, low, high = found.found or (None, None, None)
    return {"peer": name, "ratio": ratio, "low": low, "high": high, "verdict": word, "why": why, "blocks": len(found.logs),
            "rejected": found.rejected}


def alone(row, within):
    """Where nobody else can do the case: whether its share of the limit can be believed."""
    found = Series(within)
    for block in row["blocks"]:
        found.add(0.0, block["why"])
    return {"verdict": "unjudged" if found.doubt() else "alone", "why": found.doubt() or "", "blocks": len(found.logs), "rejected": found.rejected}


def accepted(blocks):
    """Those that count; if there are none, all: an unjudged cell has times too."""
    return [b for b in blocks if not b["why"]] or blocks


def timing(case, blocks, place):
    """Best and median seconds, the median share of the limit."""
    kept = accepted(blocks)
    seconds = [s for b in kept for s in b[place]]
    return {"best": min(seconds), "median": statistics.median(seconds),
            "share": statistics.median(x for b in kept for x in measure.shares(case, b, place))}


def cell(case, within):
    """What a table says of one cell."""
    row = {k: case[k] for k in ("name", "group", "threads", "absent")}
    row["time"] = case.get("time", "")
    if "failed" in case:
        return {**row, "failed": case["failed"].split("\n")[0][:300]}
    heed, *others = case["systems"]
    blocks = [b for r in case["systems"] for b in r["blocks"]]
    mine = timing(case, blocks, "A")
    limits = [statistics.median(column) for column in zip(*(x for b in accepted(blocks) for x in b["limits"]))]
    bound = "FMA" if case["flops"] / limits[0] >= measure.floor(case, limits) * 0.999e9 else "memory"
    peers = {}
    for other in others:
        if other["group"] == "peer":
            trial = {"best": min(other["trial"]), "median": min(other["trial"]), "share": measure.floor(case, limits) / min(other["trial"])}
            peers[other["system"]] = {"variant": other["variant"], "raced": bool(other["blocks"]),
                                      **(timing(case, other["blocks"], "B") if other["blocks"] else trial)}
    aims = goal(case)
    row.update(mine, bound=bound, gate=case["gate"], goal=aims[0], goal_ratio=aims[1], compile=case["compile_seconds"],
               gflops=1e-9 * case["flops"] / mine["median"], gbytes=1e-9 * (case["reads"] + case["writes"]) / mine["median"],
               grows=case["grows"], rounded=case["rounded"], peers=peers, difference=heed["difference"], n=case["params"].get("N", 0),
               intensity=case["flops"] / (case["reads"] + case["writes"]), limits=limits)
    row.update({key: case[key] for key in ("params", "processes", "compile_processor", "held") if key in case and case["group"] == "generate"})
    if "kernels" in case:
        row["kernels"] = kernels(case)
    judged = against([r for r in others if r["group"] == "peer"], within)
    row.update(judged or alone(heed, within))
    if judged and judged["ratio"] is not None:
        row["peer_median"] = next(p["median"] for p in peers.values() if p["variant"] == judged["peer"])
    prototype = against([r for r in others if r["group"] == "prototype"], within)
    return {**row, "prototype": prototype} if prototype else row


def kernels(case):
    """[name, share of the time of all, share of the operations of all], of kernels that take a tenth of it or more; the longest first."""
    times, operations = {}, {}
    for name, seconds, flops, _ in case["kernels"]:
        times[name] = times.get(name, 0) + seconds
        operations[name] = operations.get(name, 0) + flops
    total, work = sum(times.values()) or 1, sum(operations.values()) or 1
    found = [[name, times[name] / total, operations[name] / work] for name in sorted(times, key=times.get, reverse=True)]
    return [k for k in found if k[1] >= 0.1]


def below(s):
    """(case, share of the limit, what takes the time) of the cells of the zoo that do not reach half of their limit."""
    found = sorted((c for c in s["cells"] if "kernels" in c and c["share"] < 0.5), key=lambda c: c["share"])
    return [[c["name"], f"{c['share']:.2f} of {c['bound']}", ", ".join(f"`{name}` {time:.0%}" for name, time, _ in c["kernels"])] for c in found]


def summary(run):
    """The run without its single times."""
    known = {k: v for k, v in run.items() if k != "cases"}
    cells = [cell(case, run["within"]) for case in run["cases"]]
    limits = {}
    for threads in sorted({c["threads"] for c in cells}):
        found = list(zip(*(c["limits"] for c in cells if c["threads"] == threads and "failed" not in c)))
        if found:
            measured = [[x for x in column if x > 0] for column in found]
            limits[str(threads)] = dict(zip(("fma", "read", "write", "copy"), (statistics.median(x) if x else 0 for x in measured)))
    return {**known, "limits": limits, "cells": cells}


def counts(cells, key=lambda c: c["verdict"]):
    """'3 ahead, 1 tie'."""
    words = [key(c) for c in cells]
    return ", ".join(f"{words.count(word)} {word}" for word in VERDICTS if words.count(word)) or "none"


def sure(s):
    """Cells whose times can be believed."""
    return [c for c in s["cells"] if c.get("verdict", "unjudged") != "unjudged"]


def reached(cells, aim, value):
    """'3 of 4', of the cells that have this aim."""
    aimed = [c for c in cells if c.get(aim) and c.get(value) is not None]
    return f"{sum(c[value] >= c[aim] for c in aimed)} of {len(aimed)}"


def verdict(s):
    """Lines on the run as a whole; the counts first."""
    there, failed = [c for c in s["cells"] if "failed" not in c], [c for c in s["cells"] if "failed" in c]
    found = [f"{len(s['cells'])} cells beside the best peer: {counts(there)}" + (f", {len(failed)} failed" if failed else "")]
    judged = sure(s)
    found.append(f"goals: ratio to the best peer reached in {reached(judged, 'goal_ratio', 'ratio')} judged cells, share of the limit in "
                 f"{reached(judged, 'goal', 'share')}; gates (share): {reached(judged, 'gate', 'share')}")
    ratios = sorted(c["ratio"] for c in judged if c["group"] == "zoo" and c.get("ratio"))
    if ratios:
        found.append(f"zoo: peer / Heed is {statistics.median(ratios):.2f} in the median of {len(ratios)} judged cells, {ratios[0]:.2f} at least")
    beside = [c for c in there if "prototype" in c]
    if beside:
        found.append(f"{len(beside)} cells beside the prototype: {counts(beside, lambda c: c['prototype']['verdict'])}")
    for threads, limit in s["limits"].items():
        memory = f", {limit['read']:.1f} GB/s read, {limit['write']:.1f} GB/s written" if limit["read"] else ""
        memory += f", {limit['copy']:.1f} GB/s copied" if limit.get("copy") else ""
        found.append(f"{threads} thread{'s' if threads != '1' else ''}: {limit['fma']:.0f} GFLOP/s f32 multiply-add{memory}")
    for name, rounded, factor in cliffs(s):
        found.append(f"cliff: an operation of {name} costs {factor:.2f} times one of {rounded}")
    long = {c["name"] for c in there if c["group"] == "attention" and c.get("n", 0) >= 1024}
    slow = {name: factor for name, factor in speedups(s).items() if name in long and factor < TWICE} if len(s["machine"]["cores"]) == 2 else {}
    return found + [f"two threads bring {name} only {factor:.2f} times the speed of one" for name, factor in slow.items()]


def cliffs(s):
    """(case, round case, factor) where an odd size falls off."""
    speeds = {(c["name"], c["threads"]): c["gflops"] for c in sure(s)}
    found = [(c["name"], c["rounded"], speeds[c["rounded"], c["threads"]] / c["gflops"]) for c in sure(s)
             if c.get("rounded") and (c["rounded"], c["threads"]) in speeds]
    return [f for f in found if f[2] > CLIFF]


def speedups(s):
    """Case -> what all threads bring against one."""
    one = {c["name"]: c["median"] for c in sure(s) if c["threads"] == 1}
    return {c["name"]: one[c["name"]] / c["median"] for c in sure(s) if c["threads"] > 1 and c["name"] in one}


def milliseconds(seconds):
    return f"{1e3 * seconds:.3f}" if seconds < 0.1 else f"{1e3 * seconds:.1f}"


def ratio(found):
    return "-" if found.get("ratio") is None else f"{found['ratio']:.3f} [{found['low']:.3f}, {found['high']:.3f}]"


def says(found):
    return found["verdict"] + (f" ({found['why']})" if found.get("why") else "")


def line(c):
    if "failed" in c:
        return f"{c['name']} ({c['threads']}): failed: {c['failed']}"
    rival = f"; {c['peer']} {ratio(c)}" if "peer" in c else ""
    beside = f"; prototype {ratio(c['prototype'])} {c['prototype']['verdict']}" if "prototype" in c else ""
    rejected = sum(c.get("rejected", {}).values())
    return (f"{c['name']} ({c['threads']}): {milliseconds(c['median'])} ms, {c['share']:.2f} of {c['bound']}{rival}: {says(c)}"
            f"{f', {rejected} blocks rejected' if rejected else ''}{beside}")


COLUMNS = ("case", "threads", "ms best", "ms median", "of limit", "bound", "gate", "goal", "best peer", "peer / Heed", "goal", "verdict",
           "blocks", "at, UTC", "compile s")


def number(value, marked):
    return "-" if not value else f"{value:.2f}" + (" (!)" if marked else "")


def cells(c):
    if "failed" in c:
        return [c["name"], str(c["threads"]), "failed: " + c["failed"]] + [""] * (len(COLUMNS) - 3)
    blocks = f"{c['blocks']} of {c['blocks'] + sum(c['rejected'].values())}" if "blocks" in c else "-"
    known = c.get("ratio") is not None
    return [c["name"], str(c["threads"]), milliseconds(c["best"]), milliseconds(c["median"]), f"{c['share']:.2f}", c["bound"],
            number(c["gate"], c["share"] < c["gate"]), number(c["goal"], c["goal"] and c["share"] < c["goal"]), c.get("peer", "-"), ratio(c),
            number(c["goal_ratio"], known and c["goal_ratio"] and c["ratio"] < c["goal_ratio"]), c["verdict"], blocks, c["time"][11:16],
            f"{c['compile']:.1f}"]


def absences(s):
    """Why somebody is not in a cell: (who, why) -> cells."""
    found = {}
    for c in s["cells"]:
        for who, why in c["absent"].items():
            found.setdefault((who, why), []).append(c["name"])
    return found


def doubts(s):
    """Cells that are not judged, and why."""
    return [(c["name"], str(c["threads"]), c["why"], ", ".join(f"{n} {why}" for why, n in c["rejected"].items()) or "none")
            for c in s["cells"] if c.get("verdict") == "unjudged"]


def text(s):
    """The table for a screen."""
    table = [list(COLUMNS)] + [cells(c) for c in s["cells"]]
    widths = [max(len(r[k]) for r in table if not r[2].startswith("failed")) for k in range(len(COLUMNS))]
    lines = ["  ".join(r[k].ljust(widths[k]) if k in (0, 5, 8, 11) else r[k].rjust(widths[k]) for k in range(len(r))).rstrip() for r in table]
    lines += ["", f"{s['machine']['cpu']}, commit {s['commit']}; (!) marks what is below its gate or goal", *verdict(s)]
    lines += [f"below half of the limit: {name}: {share}: {kernels}" for name, share, kernels in below(s)]
    lines += [f"unjudged: {name} ({threads}): {why}; rejected: {rejected}" for name, threads, why, rejected in doubts(s)]
    lines += [f"{name}: {version}" for name, version in s["systems"].items()]
    lines += [f"not compared: {who}: {why} ({len(names)} cells, {names[0]})" for (who, why), names in absences(s).items()]
    return "\n".join(lines)
