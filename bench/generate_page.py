"""Tables of the page on generation that other groups have not: tokens per second, whole processes, compile times."""

HEAD = ("case", "threads", "prompt, tokens/s", "new, tokens/s", "best peer's prompt", "best peer's new")
PROCESSES = ("case", "threads", "system", "one token, s", "all tokens, s", "memory, MB", "anonymous, MB", "of files, MB", "weights and cache, MB")


def fastest(cell):
    """The least median of a peer, with its name; nothing where there is none."""
    peers = cell.get("peers") or {}
    name = min(peers, key=lambda n: peers[n]["median"], default=None)
    return (peers[name]["median"], peers[name]["variant"]) if name else None


def speeds(found):
    """Tokens per second of prompts and of new ones, Heed's and the best peer's."""
    by_shape = {}
    for c in found:
        shape, _, what = c["name"].rpartition(" ")
        by_shape.setdefault((shape, c["threads"]), {})[what] = c
    lines = []
    for (shape, threads), cells in by_shape.items():
        mine, theirs = [], []
        for what in ("prefill", "step"):
            c = cells.get(what)
            if not c or "failed" in c:
                mine.append("-")
                theirs.append("-")
                continue
            tokens = c["params"]["B"] * (c["params"]["N"] if what == "prefill" else 1)
            best = fastest(c)
            mine.append(f"{tokens / c['median']:.1f}")
            theirs.append(f"{tokens / best[0]:.1f} ({best[1]})" if best else "-")
        lines.append([shape, str(threads), *mine, *theirs])
    return lines


def megabytes(kilobytes):
    return f"{kilobytes * 1024e-6:.0f}"


def processes(found):
    """What whole processes take: once for each shape."""
    lines = []
    for c in found:
        if not c["name"].endswith(" step") or "failed" in c:
            continue
        need = f"{1e-6 * c['held']:.0f}"
        for name, p in c.get("processes", {}).items():
            shape = c["name"].removesuffix(" step")
            if "failed" in p:
                lines.append([shape, str(c["threads"]), name, p["failed"][:80]] + [""] * 4 + [need])
                continue
            memory = [megabytes(p["memory"].get(key, 0)) for key in ("VmHWM", "RssAnon", "RssFile")]
            lines.append([shape, str(c["threads"]), name, f"{p['first']:.2f}", f"{p['all']:.2f}", *memory, need])
    return lines


def compiles(found):
    """(model and type, seconds of processor for all its layers, for two of them)."""
    lines = {}
    for c in found:
        if c.get("compile_processor"):
            p = c["params"]
            more = "" if p.get("products", "f32") == "f32" else f" products={p['products']}"
            lines[f"{p['model']} {p['type']}{more}"] = [f"{c['compile']:.1f}"] + [f"{x:.1f}" for x in c["compile_processor"]]
    return [[name, *line] for name, line in lines.items()]


def sections(found, table):
    """Lines of the page behind the table of cells."""
    there = [c for c in found if "failed" not in c]
    return ["Tokens per second, of all rows together:", "", *table(HEAD, speeds(found)), "",
            "Whole processes, from start to end, with the files in the page cache: one that makes one token of each row (the least of two), and one that makes "
            "all; the most memory that it held. \"heed, packed\" opens a file of weights that an earlier process has packed. The eager way is PyTorch's; Python's own start "
            "is in its times and CTranslate2's.", "",
            *table(PROCESSES, processes(there)), "", "Compiling, cold, in seconds by the clock and of the processor, and of the same model with two layers:", "",
            *table(("checkpoint", "by the clock", "of the processor", "of two layers"), compiles(there)), ""]
