"""Score terms, what is added to them, and maps of them."""
from draw import *

feature("dot", "additive score", "distance score", "bilinear score", "second term", "relative keys", "relative bias", "relative 2-D",
        "bucket bias", "slope bias", "pair bias", "key bias", "row bias", "soft cap", "score scale", "affine score", "biased query",
        "unused binder", "partial contraction", "mapped score", "score cast", "mixed scores", "bucket tensor")


def score(d, site, q, k):
    e = site.contract
    kq, kk = q.at(), site.keyed(k)
    kind = d.pick(["dot", "dot", None, "additive score", "distance score", "bilinear score", "biased query", "relative keys"]) or "dot"
    pairs = site.pairs
    if kind == "additive score":
        a = d.input("a", e)
        body = d.sum(e, a.at() * Call("tanh", (kq + kk,)))
    elif kind == "distance score":
        body = d.sum(e, (kq - kk) ** 2) * d.one(-0.5, -1.0)
    elif kind == "bilinear score":
        z = d.key("z", d.extents[e[0]])
        w = d.input("bi", [e[0], z], recipe=("weight", "3"))
        p = d.let("qw", [z if x == e[0] else x for x in q.keys], d.sum([e[0]], kq * w.at()))
        d.extents[z] = d.extents[e[0]]
        body = d.sum(e, rebuild(p.at(), lambda n: Name(e[0]) if n == Name(z) else n) * kk)
    elif kind == "biased query":
        u = d.input("u", e)
        body = d.sum(e, (kq + u.at()) * (kk + u.at() if d.chance(0.3) else kk))
    elif kind == "relative keys" and site.query and not site.same:
        r = d.input("rk", ["o" , e[0]], shape=(d.extents[site.query[0]] + d.extents[site.key[0]], d.extents[e[0]]))
        row = r.at(o=offset(d, site))
        body = d.sum(e, kq * d.one(kk + row, kk - row))
    else:
        factors = [kq, kk]
        d.random.shuffle(factors)
        body = dot(d, site, e, factors)
    s = d.let("s", d.shuffled(pairs, 0.15), body)
    steps = [second, added, scaled, capped, affine, remapped, cast, mixed]
    d.random.shuffle(steps)
    for step in steps:
        if d.chance(0.3):
            right = step(d, site, s)
            if right is not None:
                s = d.let("s", s.keys, right, rebind=d.chance(0.5) and s.name == "s")
    return s


def dot(d, site, e, factors):
    root = Call("sqrt", (d.one(d.extents[e[0]], d.extents[e[0]], d.extents[e[0]] + 1),)) if d.chance(0.7) else Num(d.one(0.5, 2.0))
    if d.have("partial contraction", 0.3):
        extent = d.extents[e[-1]]
        small = Index(e[-1], (extent + 1) // 2)
        return Reduce("sum", tuple(small if x == e[-1] else d.index(x) for x in e), factors[0] * factors[1])
    if d.have("unused binder", 0.3):
        return Reduce("sum", tuple(d.index(x) for x in e) + (Index("g", Num(3)),), factors[0] * factors[1] / 3)
    form = d.random.randrange(6)
    if form in (0, 5):
        return d.sum(e, factors[0] * factors[1] / root)
    if form == 1:
        return d.sum(e, factors[0] * factors[1]) / root
    if form == 2:
        return d.sum(e, factors[0] / root * factors[1])
    if form == 3:
        return d.sum(e, factors[0] * factors[1])
    return Num(0.5) * d.sum(e, factors[0] * factors[1])


def offset(d, site):
    """j - i + N, in [1, N + M)."""
    i, j = Name(site.query[0]), Name(site.key[0])
    return j - i + d.extents[site.query[0]]


def second(d, site, s):
    if d.have("second term"):
        r = d.key("r", d.dim("R", "width"))
        a = d.input("qr", d.shuffled([k for k in site.rows if d.chance(0.8)] + [r]))
        b = d.input("kr", d.shuffled([k for k in site.batch if d.chance(0.4)] + site.key + [r]))
        return s.at() + d.sum([r], a.at() * b.at())


def added(d, site, s):
    choices = [None, "slope bias", "pair bias", "key bias", "row bias"]
    if site.query:
        choices += ["relative bias", "bucket bias"]
        if len(site.query) == 2 and len(site.key) == 2:
            choices += ["relative 2-D"] * 6
    kind = d.pick(choices)
    if not kind or kind == "slope bias" and not site.query:
        return None
    heads = [k for k in site.batch if d.chance(0.4)]
    if kind == "slope bias":
        back = Name(site.query[0]) - Name(site.key[0])
        distance = d.one(Call("abs", (back,)), back, Call("max", (back, Num(0))), Call("log1p", (Call("f32", (Call("abs", (back - 1,)),)),)))
        if d.chance(0.5) and site.batch:
            h = site.batch[-1]
            return s.at() - Num(2) ** (Num(-4) * (Name(h) + 1) / d.extents[h]) * distance
        return s.at() - Num(0.125) * distance
    if kind == "pair bias":
        return s.at() + d.input("bias", d.shuffled(heads + site.query + site.key)).at()
    if kind == "key bias":
        return s.at() + d.input("kb", heads + site.key).at()
    if kind == "row bias":
        return s.at() + d.input("rb", heads + site.query).at()
    if kind == "relative bias":
        n, m = d.extents[site.query[0]], d.extents[site.key[0]]
        r = d.input("rel", ["o"] + heads, shape=[n + m] + [d.extents[h] for h in heads])
        return s.at() + r.at(o=offset(d, site))
    if kind == "bucket bias":
        c = d.one(1, 2, 5)
        r = d.input("rel", ["o"] + heads, shape=[Num(2 * c + 1)] + [d.extents[h] for h in heads])
        bucket = Call("clamp", (Name(site.key[0]) - Name(site.query[0]), Num(-c), Num(c))) + c
        if d.have("bucket tensor", 0.4):
            bucket = d.let("bk", [site.query[0], site.key[0]], bucket).at()
        return s.at() + r.at(o=bucket)
    (i, y), (j, x) = site.query, site.key
    shape = [d.extents[i] + d.extents[j], d.extents[y] + d.extents[x]] + [d.extents[h] for h in heads]
    r = d.input("rel", ["o", "w"] + heads, shape=shape)
    return s.at() + r.at(o=offset(d, site), w=Name(x) - Name(y) + d.extents[y])


def scaled(d, site, s):
    if d.have("score scale"):
        return d.one(s.at() * 0.5, s.at() / 2, s.at() * d.input("tau", [], recipe=("positive",)).at())


def capped(d, site, s):
    if d.have("soft cap"):
        c = d.one(2.0, 5.0)
        return d.one(Num(c) * Call("tanh", (s.at() / c,)), Num(c) * Call("tanh", (s.at() * (1 / c),)))


def affine(d, site, s):
    if d.have("affine score"):
        heads = [k for k in site.rows if d.chance(0.5)]
        return s.at() * d.input("sa", heads).at() + d.input("sb", heads).at()


def remapped(d, site, s):
    if d.have("mapped score", 0.5):
        return d.one(*([s.at() ** 2, s.at() * s.at()] * d.have("powers")), Call("abs", (s.at(),)), Call("max", (s.at(), Num(-0.5))), Call("sin", (s.at(),)))


def cast(d, site, s):
    if d.have("score cast", 0.5):
        return Call("f32", (Call("f16", (s.at(),)),))


def mixed(d, site, s):
    """Heads are mixed before the normaliser (talking heads)."""
    if site.batch and d.have("mixed scores", 0.5):
        h = site.batch[-1]
        z = d.key("z", d.extents[h])
        w = d.input("mixs", [z, h], recipe=("weight", "3"))
        m = d.let("sx", [z if k == h else k for k in s.keys], d.sum([h], s.at() * w.at()))
        return m.at(**{z: h})
