"""Productions of attention: where q, k and v come from, what happens to them, and the whole block."""
from draw import *
from masks import mask
from normalisers import weigh
from scores import score
from transforms import transform

feature("two batches", "three batches", "no batch", "grouped heads", "shared keys", "grid queries", "no query", "grid keys",
        "two contracted", "two values", "no value", "self", "value offsets", "talking heads", "merged heads", "cast inputs", "split heads", "same keys and values")


class Site:
    """The indices of one attention."""

    def __init__(self, d):
        self.d = d
        self.batch, self.heads = [], []
        count = 3 if d.have("three batches", 0.3) else 2 if d.have("two batches", 0.6) else 0 if d.have("no batch", 0.3) else 1
        for n in range(count):
            self.batch.append(d.key("bhc"[n], d.dim("BHC"[n], "batch" if n == 0 else "head")))
        self.group = None
        if count >= 2 and d.have("grouped heads", 0.6):
            G = d.dim("G", "group")
            H = d.extents[self.batch[1]]
            d.multiples[H.name] = G.name
            self.group = (self.batch[1], d.key("g", G), G, H)
        self.query = [] if d.have("no query", 0.2) else [d.key("i", d.dim("N", "length"))]
        if self.query and d.have("grid queries", 0.3):
            self.query.append(d.key("y", d.dim("Y", "side")))
        self.same = bool(self.query) and d.have("self", 0.5)
        self.key = [d.key("jx"[n], d.extents[q] if self.same else None) for n, q in enumerate(self.query)] if self.same else [d.key("j", d.dim("M", "length"))]
        if not self.same and d.have("grid keys", 0.3):
            self.key.append(d.key("x", d.dim("X", "side")))
        self.contract = [d.key("e", d.dim("E", "width"))]
        if d.have("two contracted", 0.25):
            self.contract.append(d.key("s", d.dim("S", "side")))
        self.value = [] if d.have("no value", 0.15) else [d.key("f", d.dim("F", "width"))]
        if self.value and d.have("two values", 0.2):
            self.value.append(d.key("t", d.dim("T", "side")))
        # Which batch axes keys and values lack.
        self.lacking = {self.batch[-1]} if count >= 2 and not self.group and d.have("shared keys", 0.4) else set()

    @property
    def rows(self):
        return self.batch + self.query

    @property
    def pairs(self):
        return self.rows + self.key

    def keyed(self, t):
        """A read of a tensor of keys or values: its group of heads."""
        if self.group and self.group[1] in t.keys:
            h, g, G, H = self.group
            return t.at(**{g: Name(h) * G // H})
        return t.at()


def source(d, site, stem, rest, keyed):
    """An input over the batch and the indices `rest`, perhaps of 16 bits, perhaps with heads merged into the last axis."""
    batch = [b for b in site.batch if not (keyed and b in site.lacking)]
    keys = [site.group[1] if keyed and site.group and b == site.group[0] else b for b in batch] + rest
    if len(batch) >= 2 and not (keyed and site.group) and d.have("split heads", 0.3):
        h, e = keys[1], keys[-1]
        outer = [k for k in keys if k not in (h, e)]
        merged = d.key("m", d.extents[h] * d.extents[e])
        x = d.input(stem, outer + [merged], recipe=("real",))
        return d.let(stem, keys, x.at(**{merged: Name(h) * d.extents[e] + Name(e)})), ""
    kind = d.one("f16", "bf16") if d.have("cast inputs", 0.2) else "f32"
    return d.input(stem, d.shuffled(keys), kind), kind


# What an attention may have that is little more than one softmax.
FEW = {"softmax", "added input mask", "layout", "no batch", "two batches", "grouped heads", "self", "merged heads", "sink", "pair bias", "causal", "lengths", "bool keys"}


def attention(d):
    """One attention on inputs of its own; the result's tensor. Among many features one keeps the others from a schedule, so that at times there are few."""
    on = d.on
    if d.chance(0.25):
        d.on = d.on & FEW | {"softmax", "added input mask"}
    try:
        return any_attention(d)
    finally:
        d.on = on


def any_attention(d):
    site = Site(d)
    q, kind = source(d, site, "q", site.query + site.contract, False)
    q = lifted(d, q, kind)
    if site.same and not site.lacking and not site.group and d.have("same keys and values", 0.2):
        # By a name of its own: a later step may bind q's again, in another layout.
        k = T(q.name, [(dict(zip(site.query, site.key)).get(key, key), n) for key, n in q.axes])
        k = d.let("k", k.keys, k.at())
    else:
        k, kind = source(d, site, "k", site.key + site.contract, True)
        k = lifted(d, k, kind)
    v, kind = source(d, site, "v", site.key + site.value, True)
    v = lifted(d, v, kind)
    q = transform(d, q, site.query, site.contract)
    k = transform(d, k, site.key, site.contract)
    s = score(d, site, q, k)
    where = mask(d, site)
    return weigh(d, site, s, where, v)


def lifted(d, t, kind):
    """A 16-bit input as f32, so that its arithmetic is."""
    return t if kind in ("", "f32") else d.let(t.name + "w", t.keys, Call("f32", (t.at(),)))
