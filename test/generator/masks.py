"""Which keys a query sees: conditions, and how they are nested."""
from draw import *

feature("causal", "aligned causal", "window", "block mask", "dilated", "lengths", "query lengths", "sorted ids", "unsorted ids", "spans",
        "bool keys", "bool pairs", "nested mask", "not mask", "strict causal", "global tokens", "data threshold", "offset causal", "data window", "dilated window", "computed mask")


def mask(d, site):
    """A condition, or None."""
    if d.chance(0.3):
        return None
    first = one(d, site)
    if first is None:
        return None
    while d.have("nested mask", 0.4):
        other = one(d, site)
        if other is None:
            break
        first = d.one(first & other, first | other, first | (first & other), other & first, Un("not", first & other), Un("not", first | other))
    if d.have("not mask", 0.2):
        first = Un("not", first)
    return first


def one(d, site):
    """A condition of pairs, or None. Long: one kind of mask after the other."""
    j = Name(site.key[-1] if len(site.key) > 1 and d.chance(0.3) else site.key[0])
    M = d.extents[j.name]
    options = ["lengths", "sorted ids", "unsorted ids", "spans", "bool keys", "bool pairs", "data threshold", "global tokens", "computed mask"]
    if site.query:
        i = Name(site.query[0])
        N = d.extents[i.name]
        options += ["causal", "aligned causal", "window", "block mask", "dilated", "strict causal", "query lengths", "offset causal", "data window", "dilated window"] * 2
    kind = d.pick(options)
    if kind is None:
        return None
    batch = [b for b in site.batch if d.chance(0.6)]
    if kind == "causal":
        return d.one(j <= i, i >= j, (i - j) >= 0, j < i + 1)
    if kind == "strict causal":
        return j < i
    if kind == "aligned causal":
        return d.one(j <= i + (M - N), i - j >= N - M)
    if kind == "offset causal":
        return j <= i + d.one(-2, 3, 16)
    if kind == "window":
        w = Num(d.one(1, 3, 7, 16, 40, 127, 128))
        return d.one(Call("abs", (i - j,)) <= w, (i - j < w) & (j <= i), (j > i - w) & (j < i + w))
    if kind == "data window":
        t = d.input("span", batch + [i.name] * d.chance(0.7), "i32", ("integer", 0, d.one(4, 100)))
        return Call("abs", (i - j,)) <= t.at()
    if kind == "block mask":
        c = Num(d.one(2, 5, 16))
        return d.one((i // c).eq(j // c), i // c >= j // c, i // c <= j // c + 1)
    if kind == "dilated":
        c = d.one(2, 3)
        return ((i - j) % c).eq(0)
    if kind == "dilated window":
        c, w = d.one((2, 3), (3, 16), (2, 40), (5, 48), (4, 100))
        return d.one(Call("abs", (i - j,)) <= c * w, (i - j < c * w) & (j <= i)) & ((i - j) % c).eq(0)
    if kind == "computed mask":
        t = d.input("time", batch + [j.name], "f32", ("exact",))
        return Call("abs", (t.at() - 0.25,)) <= d.one(0.5, 1.0)
    if kind == "lengths":
        t = d.input("len", batch, "i32", ("integer", 0, f"{text(M)} + 1"))
        return j < t.at()
    if kind == "query lengths":
        t = d.input("len", batch, "i32", ("integer", 0, f"{text(N)} + 1"))
        return (j < t.at()) & (i < t.at())
    if kind in ("sorted ids", "unsorted ids"):
        recipe = ("sorted" if kind == "sorted ids" else "integer", 0, d.one(2, 4))
        if not site.query:
            return d.input("seg", batch + [j.name], "i32", recipe).at().eq(1)
        a = d.input("seg", batch + [j.name], "i32", recipe)
        b = T(a.name, [(i.name if k == j.name else k, n) for k, n in a.axes]) if N == M else d.input("qseg", batch + [i.name], "i32", recipe)
        return d.one(a.at().eq(b.at()), b.at() >= a.at())
    if kind == "spans":
        rows = batch + ([site.query[0]] if site.query and d.chance(0.6) else [])
        a = d.input("lo", rows, "i32", ("integer", -1, f"{text(M)} + 1"))
        b = d.input("hi", rows, "i32", ("integer", 0, f"{text(M)} + 2"))
        return (a.at() <= j) & (j < b.at())
    if kind == "bool keys":
        return d.input("keep", batch + [j.name], "bool", ("bool",)).at()
    if kind == "bool pairs":
        return d.input("allow", d.shuffled(batch + site.query + site.key), "bool", ("bool",)).at()
    if kind == "global tokens":
        t = d.input("glob", batch + [j.name], "bool", ("bool", 0.3)).at()
        return t | (j <= i) if site.query else t
    t = d.input("time", batch + [j.name], "f32", ("exact",))
    return t.at() >= 0.25


def text(extent):
    from numpy_text import expr
    return expr(extent)
