"""From scores to the result: the normaliser, its spellings, what happens to the weights, and the product with the values."""
from draw import *
from masks import one as condition
from masks import text

feature("softmax", "weights returned", "softmax alone", "sink", "written softmax", "shifted softmax", "sigmoid weights", "relu weights", "identity weights", "one plus sum",
        "clamped sum", "quotient", "soft mask", "select mask", "added mask", "mapped weights", "post weights",  "exp weights",
        "log softmax", "relu quotient", "powers", "weights cast", "reciprocal", "large scores", "added input mask",
        "finite mask", "own condition", "several rows", "row of scores", "partial softmax", "over queries", "pair values", "other base", "other maximum", "log-sum-exp",
        "sparsemax", "entmax15")


def weigh(d, site, s, where, v):
    """The result's tensor over rows and values, in any layout. Long: one kind after the other."""
    kind = d.pick(["softmax"] * 8 + ["written softmax", "shifted softmax", "sigmoid weights", "relu weights", "identity weights", "one plus sum",
                   "clamped sum", "quotient", "relu quotient", "exp weights", "log softmax"]) or "softmax"
    pairs, keys = s.keys, site.key
    reduced = None
    if kind in ("softmax", "log softmax"):
        at = s.at()
        cond = where
        if d.have("large scores", 0.15):
            s = d.let("sl", pairs, s.at() * d.one(50, 300))
            at = s.at()
        if d.have("added input mask", 0.5):
            m = d.input("minf", [k for k in pairs if k in keys or d.chance(0.5)], recipe=("mask",))
            s = d.let("sm", pairs, s.at() + m.at())
            at = s.at()
        if where is not None and d.have("select mask", 0.3):
            s = d.let("sm", pairs, If(where, s.at(), Num(float("-inf"))))
            at, cond = s.at(), None
        elif where is not None and d.have("finite mask", 0.2):
            s = d.let("sm", pairs, If(where, s.at(), Num(d.one(-1e4, -1e9))))
            at, cond = s.at(), None
        elif where is not None and d.have("added mask", 0.3):
            m = d.let("am", pairs, If(where, Num(0.0), Num(float("-inf"))))
            s = d.let("sm", pairs, s.at() + m.at())
            at, cond = s.at(), None
        sink = None
        if kind == "softmax" and d.have("sink", 0.3):
            sink = d.input("sink", [k for k in site.batch + site.query if d.chance(0.5)], recipe=("real", d.one(1, 8))).at()
        if kind == "log softmax":
            if cond is not None or where is not None:
                kind = "softmax"
            else:
                p = d.let("lp", pairs, Softmax(tuple(keys), at, cond, None, True))
                return product(d, site, p, None, v, None)
        over = keys[:1] if len(keys) == 2 and d.have("partial softmax", 0.6) else keys
        if site.query and d.have("over queries", 0.25):
            return over_queries(d, site, s, cond, v)
        map = d.pick(["softmax"] * 6 + ["sparsemax", "entmax15"]) or "softmax"
        p = d.let("p", pairs, Softmax(tuple(over), at, cond, sink if map == "softmax" else None, False, map))
        if map == "softmax" and over == keys and d.have("log-sum-exp", 0.3):
            log_sum_exp(d, s, keys, cond, sink)
        if d.have("row of scores", 0.15):
            top = d.let("top", [k for k in pairs if k not in keys], d.sum(keys, s.at(), cond, "max"))
            p = d.let("p", pairs, p.at() * Call("tanh", (top.at(),)))
        if d.have("softmax alone", 0.2):
            return p
        if d.have("weights returned", 0.25):
            d.also.append(p.name)
    elif kind in ("written softmax", "shifted softmax"):
        if where is not None and d.chance(0.5):
            s = d.let("sm", pairs, If(where, s.at(), Num(-1e30 if kind == "shifted softmax" else -20.0)))  # exp alone would underflow to 0/0
            where = None
        top = None
        if kind == "shifted softmax":
            rows = [k for k in pairs if k not in keys]
            top = d.let("top", rows, d.sum(keys, s.at(), where, "max"))
            x = Call("exp", (s.at() - top.at(),))
        else:
            x = Call("exp", (s.at(),))
        if d.have("soft mask", 0.3):
            g = d.input("soft", d.shuffled([k for k in pairs if d.chance(0.5)])).at()
            g = d.one(Call("sigmoid", (g,)), Call("clamp", (g, Num(0.0), Num(1.0))))
            x = d.one(g * x, x * g)
        elif top is not None and d.have("log-sum-exp", 0.4):
            l = d.let("l", rows, d.sum(keys, x, where))
            lse = d.let("lse", rows, top.at() + Call("log", (l.at(),)))
            d.also.append(lse.name)
            r = d.sum(keys, x * values(d, site, v), where)
            return result(d, site, r if d.chance(0.4) else r / l.at())
        if d.chance(0.5):
            return quotient(d, site, x, where, v)
        x = d.let("ex", pairs, x)
        return quotient(d, site, x.at(), where, v)
    elif kind in ("sigmoid weights", "relu weights", "identity weights", "exp weights"):
        x = s.at()
        r = Call("relu", (x,))
        powers = d.have("powers")
        body = {"sigmoid weights": Call("sigmoid", (x,)), "relu weights": d.one(r, *([r ** 2, r * r, r ** 3, r ** 1.5] * powers)),
                "identity weights": d.one(x, *([x * x, x ** 2] * powers)), "exp weights": Call("exp", (x * 0.5,))}[kind]
        p = d.let("p", pairs, body) if d.chance(0.6) else None
        if p is None:
            p = Plain(body)
        return product(d, site, p, where, v, None)
    elif kind == "one plus sum":
        x = d.let("ex", pairs, Call("exp", (s.at(),)))
        rows = [k for k in pairs if k not in keys]
        beside = Num(1)
        if d.have("other base", 0.3):
            beside = Call("exp2", (d.input("sink", [k for k in rows if d.chance(0.5)]).at(),))
        elif d.have("other maximum", 0.4):
            top = d.let("top", rows, Call("max", (d.sum(keys, s.at(), where, "max"), Num(-5.0))))
            t = d.input("sink", [k for k in rows if d.chance(0.5)]).at()
            low = Call("max", (top.at(), t)) + d.one(0, 0.5)
            x = d.let("ex", pairs, Call("exp", (s.at() - low,)))
            beside = Call("exp", (t - d.one(low, top.at()),))
        l = d.let("l", rows, d.sum(keys, x.at(), where) + beside)
        return product(d, site, x, where, v, l.at())
    elif kind == "clamped sum":
        x = s
        rows = [k for k in pairs if k not in keys]
        l = d.let("l", rows, Call("max", (Call("abs", (d.sum(keys, x.at(), where),)), Num(1.0))))
        return product(d, site, x, where, v, l.at())
    elif kind == "relu quotient":
        x = d.let("rx", pairs, Call("relu", (s.at(),)) + d.one(0, 0.5))
        return quotient(d, site, x.at(), where, v)
    else:
        x = d.let("px", pairs, Call("elu", (s.at(),)) + 1.5)
        return quotient(d, site, x.at(), where, v)
    p = after(d, site, p)
    own = condition(d, site) if d.have("own condition", 0.15) else None
    return product(d, site, p, own, v, None)


class Plain:
    """Weights that are no tensor: their expression stands where they are read."""

    def __init__(self, body):
        self.body = body

    def at(self):
        return self.body


def after(d, site, p):
    """What happens to softmax's weights before they meet the values."""
    if d.have("talking heads", 0.35) and site.batch:
        h = site.batch[-1]
        z = d.key("z", d.extents[h])
        w = d.input("mix", [z, h], recipe=("weight", "3"))
        mixed = d.let("pm", [z if k == h else k for k in p.keys], d.sum([h], p.at() * w.at()))
        p = d.let("p", p.keys, mixed.at(**{z: h}))
    if d.have("post weights", 0.3):
        g = d.input("pg", d.shuffled([k for k in p.keys if d.chance(0.5)]))
        p = d.let("p", p.keys, p.at() * g.at())
    if d.have("mapped weights", 0.2):
        p = d.let("p", p.keys, d.one(p.at() * 0.5, *([p.at() ** 2, p.at() * p.at()] * d.have("powers")), Call("sqrt", (p.at() + 0.01,)), Call("max", (p.at(), Num(0.125))), p.at() / 2))
    if site.query and d.have("several rows", 0.15):
        i = site.query[0]
        p = d.let("p", p.keys, p.at() - Num(0.5) * p.at(**{i: d.extents[i] - 1 - Name(i)}))
    if d.have("weights cast", 0.2):
        p = d.let("p", p.keys, Call("f32", (Call("f16", (p.at(),)),)))
    return p


def values(d, site, v):
    body = site.keyed(v)
    if site.query and d.have("value offsets", 0.2) and site.value:
        f = site.value[0]
        n, m = d.extents[site.query[0]], d.extents[site.key[0]]
        back = Name(site.key[0]) - Name(site.query[0])
        c = d.one(None, 1, 3)
        r = d.input("rv", ["o", f], shape=(n + m if c is None else Num(2 * c + 1), d.extents[f]))
        body = body + r.at(o=back + n if c is None else Call("clamp", (back, Num(-c), Num(c))) + c)
    elif site.query and site.value and d.have("pair values", 0.25):
        body = body + d.input("pv", [site.query[0], site.key[0], site.value[0]]).at()
    return body


def quotient(d, site, x, where, v):
    """(sum x v) / (sum x), the sum where it stands, with a name, or as a reciprocal."""
    rows, keys = site.rows, site.key
    total = d.sum(keys, x, where)
    form = d.random.randrange(3)
    if form == 0:
        return result(d, site, d.sum(keys, x * values(d, site, v), where) / total)
    l = d.let("l", rows, total)
    if form == 1 and d.have("reciprocal"):
        return result(d, site, d.sum(keys, x * values(d, site, v), where) * (Num(1.0) / l.at()))
    if form == 1:
        return result(d, site, d.sum(keys, x * values(d, site, v), where) / l.at())
    return result(d, site, d.sum(keys, x / l.at() * values(d, site, v), where))


def product(d, site, p, where, v, divisor):
    x, y = p.at(), values(d, site, v)
    body = x * y if d.chance(0.7) else y * x
    r = d.sum(site.key, body, where)
    return result(d, site, r if divisor is None else r / divisor)


def result(d, site, body):
    rows = d.shuffled(site.rows + site.value, 0.3)
    d.keys_of_result = rows
    if site.value and len(site.batch) >= 2 and d.have("merged heads", 0.4):
        h, f = site.batch[1], site.value[-1]
        name = d.name("o")
        left = [k for k in rows if k not in (h, f)]
        d.body.append(Equation(name, tuple(d.index(k) for k in left) + (Merged(d.index(h), d.index(f)),), body))
        m = d.key("w", d.extents[h] * d.extents[f])
        return T(name, [(k, d.extents[k]) for k in left + [m]])
    return d.let("o", rows, body)


def log_sum_exp(d, s, keys, where, sink):
    """A further result: the logarithm of what the softmax of s divides by, with or without the row's maximum subtracted."""
    rows = [k for k in s.keys if k not in keys]
    if sink is None and ("large scores" in d.used or d.chance(0.5)):
        top = d.let("top", rows, d.sum(keys, s.at(), where, "max"))
        value = top.at() + Call("log", (d.sum(keys, Call("exp", (s.at() - top.at(),)), where),))
    else:
        total = d.sum(keys, Call("exp", (s.at(),)), where)
        value = Call("log", (total if sink is None else total + Call("exp", (sink,)),))
    d.also.append(d.let("lse", d.shuffled(rows), value).name)


def over_queries(d, site, s, where, v):
    """Weights that the queries share out of each key, as they stand or divided by their sum over the keys."""
    rows = [k for k in s.keys if k not in site.query]
    sink = d.input("sink", [k for k in rows if d.chance(0.5)], recipe=("real", d.one(1, 8))).at() if d.have("sink", 0.3) else None
    p = d.let("p", s.keys, Softmax(tuple(site.query), s.at(), where, sink, False, "softmax"))
    if d.have("several rows", 0.3):
        return quotient(d, site, p.at() + d.one(0.01, 1e-8), None, v)
    return product(d, site, p, condition(d, site) if d.have("own condition", 0.15) else None, v, None)
