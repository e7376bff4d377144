"""Pictures of a run, as SVG: the roofline, bars per group of cases, growth with N. pictures.py RESULTS.json FOLDER"""
import json
import os
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "heed", "svg.fonttype": "none", "font.size": 8})
import matplotlib.pyplot as plt  # after the choice of a backend

import report

COLOURS = {name: f"C{k}" for k, name in enumerate(("heed", "pytorch", "onnxruntime", "openvino", "ctranslate2", "numpy"))}


def save(figure, folder, name):
    figure.tight_layout()
    figure.savefig(os.path.join(folder, name + ".svg"), metadata={"Date": None})
    plt.close(figure)


def roofline(s, found, threads, folder):
    limit = s["limits"][str(threads)]
    if not limit["read"]:  # nothing that memory bounds was measured
        return
    figure, axis = plt.subplots(figsize=(8, 4.5))
    x = [2.0 ** (k / 8) for k in range(-32, 97)]
    axis.loglog(x, [min(limit["fma"], i * limit["read"]) for i in x], "k-", linewidth=1, label="the machine: FMA peak, reading")
    for group, title in report.GROUPS.items():
        cells = [c for c in found if c["group"] == group and c["intensity"] > 0]
        if cells:
            axis.loglog([c["intensity"] for c in cells], [c["gflops"] for c in cells], "o", markersize=4, label=title)
    axis.set_xlabel("operations per byte that must move")
    axis.set_ylabel("GFLOP/s")
    axis.set_title(f"Heed under the roof of {s['machine']['cpu']}, {threads} thread(s)")
    axis.legend(fontsize=7)
    save(figure, folder, f"roofline-{threads}")


def bars(group, found, threads, folder):
    """The share of the limit, Heed's beside each peer's."""
    systems = ["heed"] + sorted({p for c in found for p in c["peers"]})
    figure, axis = plt.subplots(figsize=(8, 0.6 + 0.11 * len(found) * (len(systems) + 1)))
    for k, system in enumerate(systems):
        shares = [c["share"] if system == "heed" else c["peers"].get(system, {}).get("share", 0) for c in found]
        axis.barh([row + (k - len(systems) / 2) * 0.8 / len(systems) for row in range(len(found))], shares, 0.8 / len(systems), label=system,
                  color=COLOURS.get(system, "C9"))
    axis.set_yticks(range(len(found)), [c["name"] for c in found])
    axis.invert_yaxis()
    axis.axvline(1, color="k", linewidth=0.5)
    axis.set_xlabel("share of the limit")
    axis.set_title(f"{report.GROUPS[group]}, {threads} thread(s)")
    axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save(figure, folder, f"{group}-{threads}")


def growth(s, found, threads, folder):
    """Time per query of the series that grow."""
    figure, axis = plt.subplots(figsize=(8, 4.5))
    for k, series in enumerate(dict.fromkeys(c["grows"] for c in found)):
        cells = sorted((c for c in found if c["grows"] == series), key=lambda c: c["n"])
        axis.plot([c["n"] for c in cells], [c["share"] for c in cells], "o-", color=f"C{k}", markersize=3, label=f"{series}, Heed")
        rivals = [c for c in cells if c["peers"]]
        best = [max(p["share"] for p in c["peers"].values()) for c in rivals]
        axis.plot([c["n"] for c in rivals], best, "x--", color=f"C{k}", markersize=4, linewidth=0.7, label=f"{series}, best peer")
    axis.set_xscale("log", base=2)
    axis.set_ylim(0)
    axis.set_xlabel("N")
    axis.set_ylabel("share of the limit")
    axis.set_title(f"Growth with N, {threads} thread(s)")
    axis.legend(fontsize=7)
    save(figure, folder, f"growth-{threads}")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        s, folder = report.summary(json.load(file)), sys.argv[2]
    for old in os.listdir(folder):
        if old.endswith(".svg"):
            os.unlink(os.path.join(folder, old))
    for threads in sorted({c["threads"] for c in s["cells"]}):
        found = [c for c in s["cells"] if c["threads"] == threads and "failed" not in c]
        if not found:
            continue
        roofline(s, found, threads, folder)
        for group in report.GROUPS:
            cells = [c for c in found if c["group"] == group]
            if cells:
                bars(group, cells, threads, folder)
        grown = [c for c in found if c["grows"]]
        if grown:
            growth(s, grown, threads, folder)


if __name__ == "__main__":
    main()
