"""Productions of what is planned by sizes in the text: attentions of 512 queries and keys or more, whose scores may need no maximum, and
projections whose columns are heads."""
from attention import FEW, Site, source
from draw import *
from masks import mask
from normalisers import product

feature("long attention", "columns of heads")

# Of the batch, the heads and the mask; no step between an input and its product, which a bound reads.
KEPT = FEW - {"added input mask", "merged heads", "lengths", "bool keys", "sink", "softmax"} | {"aligned causal", "window", "strict causal"}


def long_attention(d):
    """One attention of fixed long sizes; numbers of every size, so that some calls need the maximum of their rows and some do not."""
    if not d.have("long attention"):
        return None
    on, d.on = d.on, d.on & KEPT
    site = Site(d)
    q, k, v = (source(d, site, stem, rest, stem != "q")[0] for stem, rest in
               (("q", site.query + site.contract), ("k", site.key + site.contract), ("v", site.key + site.value)))
    terms = [d.sum(site.contract, q.at() * site.keyed(k))]
    if d.chance(0.3):
        c = d.key("c", d.dim("C", "width"))
        a, b = d.input("r", site.batch + site.query + [c]), d.input("t", site.key + [c])
        terms.append(d.sum([c], a.at() * b.at()))
    s = d.let("s", site.pairs, arithmetic(d, terms))
    sink = d.input("sink", [k for k in site.batch if d.chance(0.5)], recipe=("real", d.one(1, 20, 200))).at() if d.chance(0.3) else None
    where = mask(d, site)
    p = d.let("p", site.pairs, Softmax(tuple(site.key), s.at(), where, sink))
    d.on = on
    o = product(d, site, p, None, v, None)
    for n, x in enumerate(d.inputs):
        if x.recipe == ("real",):
            scale = d.one(1, 1, 1e-3, 1e8, 1e30) if x.name == v.name else d.one(1, 1, 1, 0.1, 4, 16, 64)
            d.inputs[n] = replace(x, recipe=("real", scale, d.one(0, 0, 3)))  # a bound follows from the largest row
    roles = {"length": "long", "head": "few", "batch": "few", "group": "few", "width": "narrow"}
    for name, role in d.dims.items():
        d.dims[name] = roles.get(role, role)
        if role == "length" or role == "width" and d.chance(0.7):
            d.fixed.add(name)
    return o


def arithmetic(d, terms):
    """A score of one or two products: scaled, divided, capped, clipped."""
    scaled = lambda x: d.one(x, x * 0.25, x / 2.83, x / d.one(0.04, 8), -x, x * d.one(-2.5, 6), Num(d.one(8, 30)) * Call("tanh", (x / d.one(8, 30),)))
    s = sum((scaled(x) for x in terms[1:]), scaled(terms[0]))
    if d.chance(0.2):
        s = Call(d.one("max", "min"), (s, Num(d.one(-1.5, 0.0, 2.0))))
    return scaled(s) if d.chance(0.4) else s


def columns_of_heads(d):
    """z[b,n,h,e] = sum(c) x[b,n,c] * w[h,e,c], at times as queries, keys and values, and back by sum(h,e) z[b,n,h,e] * wo[d,h,e]."""
    if not d.have("columns of heads"):
        return None
    b, n, c = d.key("b", d.dim("B", "batch")), d.key("n", d.dim("N", "length")), d.key("c", d.dim("C", "width"))
    h, e = d.key("h", d.dim("H", "head")), d.key("e", d.dim("E", "width"))
    rows = [b] * d.chance(0.7) + [n]
    x = d.input("x", rows + [c])
    order = d.one([h, e, c], [h, e, c], [c, h, e], [h, c, e], [e, h, c])

    def project(stem):
        z = d.sum([c], x.at() * d.input("w", order, recipe=("weight", "4")).at())
        if d.chance(0.3):
            z = z + d.input("b", [h, e]).at()
        return d.let(stem, d.shuffled(rows + [h, e], 0.5), Call(d.one("gelu", "relu", "silu"), (z,)) if d.chance(0.2) else z)

    z = project("z")
    if d.chance(0.5):
        k, v, j = project("k"), project("v"), d.key("j", d.extents[n])
        s = d.let("s", rows[:-1] + [h, n, j], d.sum([e], z.at() * k.at(**{n: j})) / 2)
        p = d.let("p", s.keys, Softmax((j,), s.at(), Name(j) <= Name(n) if d.chance(0.5) else None))
        z = d.let("o", d.shuffled(rows + [h, e], 0.5), d.sum([j], p.at() * v.at(**{n: j})))
    if d.chance(0.3):
        return z
    o = d.key("d", d.dim("D", "width"))
    out = d.sum(d.one([h, e], [e, h]), z.at() * d.input("wo", d.one([o, h, e], [h, e, o], [e, o, h]), recipe=("weight", "4")).at())
    return d.let("y", rows + [o], out + d.input("r", rows + [o]).at() if d.chance(0.3) else out)
