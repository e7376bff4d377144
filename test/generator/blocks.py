"""Productions beside attention: norms, feed-forward layers, convolutions, pooling, chains of products, slices, joins, loops, collections, embeddings, integers."""
from draw import *
from masks import text

feature("rows", "feed forward", "gated unit", "residual", "convolution", "pooling", "product chain", "embedding", "concat", "slice",
        "loop", "nested loop", "shared layers", "several carried", "linear attention", "projections", "parameters", "collection", "constant table", "integer product", "shift", "argmax", "reductions", "statistics", "output projection",
        "static function", "outer weight", "outside of a loop")


def stream(d):
    """A fresh tensor of rows and a width: [B, N, D] or less."""
    keys = [d.key("b", d.dim("B", "batch"))] if d.chance(0.7) else []
    keys += [d.key("n", d.dim("N", "length")), d.key("d", d.dim("D", "width"))]
    return d.input("x", d.shuffled(keys)), keys


def walk_blocks(d, x, keys):
    """x after one to four blocks; `keys`: its axes in order of meaning, the last one the width."""
    steps = [ffn, norm, convolution, residual, shift, sliced, loop, collection, scaled, joined, lagged]
    for _ in range(d.one(1, 2, 2, 3, 4)):
        new = d.random.choice(steps)(d, x, keys)
        if new is not None:
            x, keys = new
    return x, keys


def act(d, x):
    f = d.one("relu", "gelu", "silu", "tanh", "sigmoid", "gelu_tanh", "elu", "softplus", "abs")
    return Call(f, (x,))


def linear(d, x, keys, out, bias=True):
    """x times a weight, from the last of keys to `out`."""
    i = keys[-1]
    if d.have("outer weight", 0.15):
        w = d.let("w", [out, i], d.input("b", [out]).at() * d.input("g", [i]).at())
    else:
        w = d.input("w", d.shuffled([out, i], 0.4), recipe=("weight", "4"))
    body = d.sum([i], x.at() * w.at() if d.chance(0.5) else w.at() * x.at())
    if bias and d.chance(0.5):
        body = body + d.input("b", [out]).at()
    return body


def ffn(d, x, keys):
    if not d.have("feed forward"):
        return None
    i = d.key("u", d.dim("I", "width"))
    o = d.key("d", d.extents[keys[-1]]) if d.chance(0.7) else d.key("o", d.dim("O", "width"))
    if d.have("gated unit", 0.5):
        a, g = linear(d, x, keys, i), linear(d, x, keys, i)
        h = d.let("h", keys[:-1] + [i], act(d, a) * g)
    else:
        h = d.let("h", keys[:-1] + [i], act(d, linear(d, x, keys, i)))
    y = d.let("y", keys[:-1] + [o], linear(d, h, keys[:-1] + [i], o))
    return y, keys[:-1] + [o]


def norm(d, x, keys):
    if not d.have("rows"):
        return None
    i, rest = keys[-1], keys[:-1]
    kind = d.random.randrange(5)
    if kind == 4:
        tiny = d.let("tiny", keys, x.at() * 1e-33)
        y = tiny.at() / d.sum([i], Call("abs", (tiny.at(),)))
    elif kind == 0:
        c = d.let("c", keys, x.at() - Reduce("mean", (d.index(i),), x.at()))
        y = c.at() / Call("sqrt", (d.sum([i], c.at() ** 2, op="mean") + 0.01,)) * d.input("g", [i]).at() + d.input("b", [i]).at()
    elif kind == 1:
        y = x.at() / Call("sqrt", (d.sum([i], x.at() ** 2) / d.extents[i] + 0.01,)) * d.input("g", [i]).at()
        if d.chance(0.5):
            v = d.let("var", rest, d.sum([i], x.at() * x.at(), op="mean"))
            y = x.at() * Call("rsqrt", (v.at() + 0.02,))
    elif kind == 2:
        return distribution(d, x, keys)
    else:
        top = d.let("top", rest, d.sum([i], x.at(), op=d.one("max", "min")))
        y = x.at() - top.at()
        if d.chance(0.5):
            low = d.let("low", keys, -Call("abs", (x.at(),)) - 0.25)
            y = x.at() + d.let("near", rest, d.sum([i], low.at(), op="max")).at()
    return d.let("y", keys, y), keys


def distribution(d, x, keys):
    """A normaliser of rows that are no attention's: large ones, with elements that -inf or a condition excludes, in all of a row at times."""
    i, rest = keys[-1], keys[:-1]
    if d.chance(0.3):
        x = d.let("y", keys, x.at() * d.one(50, 300))
    if d.chance(0.6):
        x = d.let("y", keys, x.at() + d.input("minf", [k for k in keys if k == i or d.chance(0.7)], recipe=("mask",)).at())
    where = None
    if d.chance(0.6):
        at = [k for k in rest if d.chance(0.6)]
        where = d.one(lambda: d.input("keep", at + [i], "bool", ("bool",)).at(),
                      lambda: Name(i) < d.input("len", at, "i32", ("integer", 0, f"{text(d.extents[i])} + 1")).at(),
                      lambda: Name(i) <= Name(keys[-2]) if rest else Name(i) >= 1)()
    map = d.one("log", "softmax", "softmax", "sparsemax", "entmax15")
    return d.let("y", keys, Softmax((i,), x.at(), where, None, map == "log", "softmax" if map == "log" else map)), keys


def residual(d, x, keys):
    if d.have("residual"):
        other = d.input("r", d.shuffled(keys, 0.3))
        return d.let("y", keys, other.at() + x.at() * d.one(1.0, 0.5)), keys


def convolution(d, x, keys):
    """Along the rows, with zeros outside; of each channel, or of all."""
    if len(keys) < 2 or not d.have("convolution"):
        return None
    n, i = keys[-2:]
    size, back = d.one((3, 1), (4, 3), (2, 0), (5, 2))
    t = d.key("t", Num(size))
    at = Name(n) + Name(t) - back
    cond = (Num(0) <= at) & (at < d.extents[n])
    if d.chance(0.5):
        w = d.input("cw", d.shuffled([t, i]))
        body = Reduce("sum", (d.index(t),), x.at(**{n: at}) * w.at(), cond)
        return d.let("y", keys, body), keys
    o = d.key("o", d.dim("O", "width"))
    w = d.input("cw", d.shuffled([o, i, t]), recipe=("weight", "8"))
    body = Reduce("sum", (d.index(t), d.index(i)), x.at(**{n: at}) * w.at(), cond)
    if d.chance(0.4):
        body = Reduce("sum", (d.index(t), d.index(i)), If(cond, x.at(**{n: at}), Num(0.0)) * w.at())
    return d.let("y", keys[:-1] + [o], body), keys[:-1] + [o]


def shift(d, x, keys):
    if len(keys) >= 2 and d.have("shift"):
        n = keys[-2]
        k = d.one(1, 2)
        return d.let("y", keys, If(Name(n) >= k, x.at(**{n: Name(n) - k}), Num(0.0)) * 0.5 + x.at()), keys


def sliced(d, x, keys):
    """Every second row, or the first half of the width, or blocks of rows."""
    if not d.have("slice"):
        return None
    i = keys[-1]
    u = d.key("u", (d.extents[i] + 1) // 2)
    kind = d.random.randrange(3)
    if kind == 0:
        return d.let("y", keys[:-1] + [u], x.at(**{i: Name(u) * 2 if d.chance(0.5) else Name(u)})), keys[:-1] + [u]
    if kind == 1:
        return d.let("y", keys, x.at(**{i: d.extents[i] - 1 - Name(i)}) - x.at()), keys
    t = d.key("t", Num(3))
    at = Name(u) * 3 + Name(t)
    d.extents[u] = (d.extents[i] + 2) // 3
    return d.let("y", keys[:-1] + [u], Reduce("sum", (d.index(t),), x.at(**{i: at}), at < d.extents[i])), keys[:-1] + [u]


def lagged(d, x, keys):
    """By a function with a static argument: the rows some steps back, or sums of so many rows."""
    if len(keys) < 2 or not d.have("static function"):
        return None
    if x.keys != keys:
        x = d.let("xt", keys, x.at())
    outer = ("A",) * (len(keys) - 2)
    names, shape = ("a",) * len(outer) + ("n", "d"), tuple(map(Name, outer + ("P", "Q")))
    index = tuple(Index(n, s) for n, s in zip(names, shape))
    read = lambda at: Read("x", tuple(map(Name, names[:-2])) + (at, Name("d")))
    n, c, P = Name("n"), Name("c"), Name("P")
    pooled = d.chance(0.5)
    name = ("pool" if pooled else "lag") + str(len(keys))
    rows = (P + c - 1) // c
    if pooled:
        body = Reduce("sum", (Index("t", c),), read(n * c + Name("t")), n * c + Name("t") < P)
        index = index[:-2] + (Index("n", rows), index[-1])
    else:
        body = read(n) - Num(0.5) * If(n >= c, read(n - c), Num(0.25))
    if not any(isinstance(f, Function) and f.name == name for f in d.functions):
        d.functions.append(Function(name, (("x", shape),), ("c",), (Equation("y", index, body),), ("y",)))
    value = Num(d.one(1, 2, 3, 7))
    out = list(keys)
    if pooled:
        out[-2] = d.key("n", (d.extents[keys[-2]] + value - 1) // value)
    y = d.name("y")
    d.body.append(Apply((y,), name, (x.name,), (("c", value),)))
    return T(y, [(k, d.extents[k]) for k in out]), out


def loop(d, x, keys):
    """A layer with its own weights, three times."""
    if not d.have("loop"):
        return None
    i = keys[-1]
    z = d.key("z", d.extents[i])
    loops = [d.key(v, Num(d.one(1, 2, 3, 4))) for v in ("lm" if d.have("nested loop", 0.7) else "l")]
    w = d.input("lw", loops + [i, z], recipe=("weight", "4"))
    if d.have("parameters"):
        d.inputs[-1] = replace(d.inputs[-1], param=len(loops))
    beside = d.let("beside", keys, act(d, x.at())).at() if d.have("outside of a loop", 0.4) else None
    outside, turn, other = x, {}, None
    if d.have("shared layers", 0.4):  # from a turn on all have one weight; what they make of the same tensor is the same
        turn = {loops[-1]: Call("min", (Name(loops[-1]), Num(d.one(0, 1, 1, 2))))}
        other = Call("tanh", (d.sum([z], outside.at(**{i: z}) * w.at(**turn)),))
    x = d.let("xl", keys, x.at())
    body = x.at() + Call("tanh", (d.sum([z], x.at(**{i: z}) * w.at(**turn)),))
    body = body + other if other else body
    if beside:
        body = body * 0.5 + beside
    body = (Equation(x.name, tuple(d.index(k) for k in keys), body),)
    total = None
    if d.have("several carried", 0.4):
        total = d.let("total", keys[:-1], d.sum([i], x.at()))
        own = Equation(total.name, tuple(d.index(k) for k in keys[:-1]), total.at() * 0.5 + d.sum([i], x.at()))
        body = (own,) + body if d.chance(0.5) else body + (own,)
    for l in reversed(loops):
        body = (For(l, Num(d.one(0, 0, 1)), d.extents[l], body),)
    d.body += body
    if total:
        x = d.let("y", keys, x.at() + total.at())
    return x, keys


def collection(d, x, keys):
    if not d.have("collection") or len(keys) > 4:
        return None
    count = d.one(1, 2)
    name = d.name("hs")
    index = tuple(d.index(k) for k in keys)
    d.body.append(Let(name, (Num(count + 1),) + tuple(d.extents[k] for k in keys)))
    d.body.append(Equation(name, (Num(0),) + index, x.at()))
    l = d.key("l", Num(count))
    before = Read(name, (Name(l),) + tuple(map(Name, keys)))
    d.body.append(For(l, Num(0), Num(count), (Equation(name, (Name(l) + 1,) + index, act(d, before) * 0.5),)))
    m = d.key("m", Num(count + 1))
    hs = T(name, [(m, Num(count + 1))] + [(k, d.extents[k]) for k in keys])
    return d.let("y", keys, Reduce(d.one("sum", "mean", "max"), (d.index(m),), hs.at())), keys


def scaled(d, x, keys):
    if d.have("constant table"):
        name = d.name("table")
        d.constants.append((name, [[0.5, -1.25], [2.0, 1.0]]))
        i = keys[-1]
        n = keys[-2] if len(keys) > 1 else i
        return d.let("y", keys, x.at() * Read(name, (Name(n) % 2, Name(i) % 2))), keys


def joined(d, x, keys):
    if not d.have("concat") or len(keys) < 2:
        return None
    n = keys[-2]
    m = d.dim("K", "side")
    total = d.key("n", d.extents[n] + m)
    other = d.input("xp", [total if k == n else k for k in keys], shape=[m if k == n else d.extents[k] for k in keys])
    out = [total if k == n else k for k in keys]
    name = d.name("y")
    parts = [(m, other.at()), (d.extents[n], x.at(**{n: total}))]
    d.body.append(Equation(name, tuple(d.index(k) for k in out), Concat(total, tuple(parts))))
    return T(name, [(k, d.extents[k]) for k in out]), out


def ending(d, x, keys):
    """What a model may make of its rows at last."""
    kind = d.pick([None, None, "pooling", "reductions", "argmax", "statistics"])
    if kind == "pooling":
        n = keys[-2] if len(keys) > 1 else keys[-1]
        t = d.input("len", [], "i32", ("integer", 0, "9")) if d.chance(0.5) else None
        where = Name(n) < t.at() if t else None
        return d.let("pooled", [k for k in keys if k != n], Reduce(d.one("mean", "sum", "max"), (d.index(n),), x.at(), where))
    if kind == "reductions":
        return reductions(d, x, keys)
    if kind == "argmax":
        return d.let("best", keys[:-1], Reduce("argmax", (d.index(keys[-1]),), x.at()))
    if kind == "statistics":
        bits = x.at() > 0.125
        return d.let("count", keys[:-1], Reduce(d.one("sum", "any", "all"), (d.index(keys[-1]),), bits))
    return x


def reductions(d, x, keys):
    """Over some of the axes, of what is computed from x, at times all of one sign."""
    if not d.have("reductions"):
        return x
    out = [k for k in keys if d.chance(0.5)]
    over = [k for k in keys if k not in out] or [out.pop()]
    if d.chance(0.7):
        x = d.let("y", keys, d.one(x.at() * 0.5, -Call("abs", (x.at(),)) - 0.25, -Call("exp", (x.at(),)), Call("abs", (x.at(),)) + 0.25))
    return d.let("z", out, Reduce(d.one("sum", "mean", "max", "max", "min"), tuple(d.index(k) for k in over), x.at()))


def chain(d):
    """A product of two to five matrices in a drawn association."""
    if not d.have("product chain"):
        return None
    n = d.one(2, 3, 3, 4, 5)
    axes = [d.key("ijklmn"[k], d.dim("IJKLMN"[k], "length" if d.chance(0.4) else "width")) for k in range(n + 1)]
    batch = [d.key("b", d.dim("B", "batch"))] if d.chance(0.3) else []
    parts = [(d.input("m", d.shuffled((batch if d.chance(0.6) else []) + axes[k:k + 2]), recipe=("weight", "3")), k, k + 1) for k in range(n)]
    while len(parts) > 1:
        k = d.random.randrange(len(parts) - 1)
        (x, a, m), (y, _, c) = parts[k:k + 2]
        keys = d.shuffled([b for b in batch if b in x.keys or b in y.keys] + [axes[a], axes[c]])
        body = x.at() * y.at()
        if d.chance(0.5):
            body = d.one(lambda: body * 0.5, lambda: body / d.extents[axes[m]], lambda: body * d.input("dg", [axes[m]]).at(), lambda: body * d.input("dg", [axes[a]]).at(), lambda: body * d.input("dg", [axes[c]]).at(),
                         lambda: body / d.input("dv", [axes[a]], recipe=("positive",)).at(),
                         lambda: body / Call("sqrt", (d.extents[axes[m]],)), lambda: body * d.input("scalar", []).at())()
        z = d.let("t", keys, d.sum([axes[m]], body) / d.extents[axes[m]] if d.chance(0.2) else d.sum([axes[m]], body))
        if d.chance(0.15):
            z = d.let("t", keys, act(d, z.at()))
        parts[k:k + 2] = [(z, a, c)]
    return parts[0][0]


def projections(d):
    """Two to four sums over one tensor with weights of one shape, as queries, keys and values are, and a gated layer: each with its own
    epilogue, which may read another of them."""
    if not d.have("projections"):
        return None
    x, keys = stream(d)
    i, o = keys[-1], d.key("o", d.dim("O", "width"))
    out, turned = keys[:-1] + [o], d.chance(0.3)
    other = d.input("x", [k for k, _ in x.axes]) if d.chance(0.3) else x
    parts = []
    for k in range(d.one(2, 2, 3, 4)):
        w = d.input("w", [i, o] if turned else [o, i], recipe=("weight", "4"))
        read = (other if k == 1 else x).at()
        body = d.sum([i], read * (w.at() * w.at() if d.chance(0.2) else w.at()))
        if d.chance(0.4):
            body = body + d.input("b", [o]).at()
        if d.chance(0.4):
            body = act(d, body)
        if d.chance(0.2):
            body = If(Name(o) >= 1, body, Num(0.5))
        if parts and d.chance(0.4):
            before = d.random.choice(parts)
            body = body * (before.at(**{o: d.extents[o] - 1 - Name(o)}) if d.chance(0.5) else before.at())
        parts.append(d.let("p", out, body))
    if d.chance(0.4):
        d.also += [p.name for p in parts[:-1]]
        return parts[-1]
    return d.let("y", out, sum((p.at() for p in parts[1:]), parts[0].at()))


def linear_attention(d):
    """phi(q) (phi(k)^T v) / (phi(q) phi(k)^T 1): the sums over keys first, or the pairs; each once or beside others that read it."""
    if not d.have("linear attention"):
        return None
    batch = [d.key("b", d.dim("B", "batch"))] * d.chance(0.5) + [d.key("h", d.dim("H", "head"))] * d.chance(0.5)
    i = d.key("i", d.dim("N", "length"))
    j = d.key("j", d.extents[i] if d.chance(0.5) else d.dim("M", "length"))
    e, f = d.key("e", d.dim("E", "width")), d.key("f", d.dim("F", "width"))
    if d.chance(0.8):
        d.fixed |= {d.extents[e].name, d.extents[f].name}
    phi = lambda x: d.one(Call("elu", (x,)) + 1, Call("relu", (x,)) + 0.25, Call("exp", (x * 0.5,)))
    q, k, v = (d.input(s, d.shuffled(batch + keys, 0.15)) for s, keys in (("q", [i, e]), ("k", [j, e]), ("v", [j, f])))
    fq, fk = d.let("fq", batch + [i, e], phi(q.at())), d.let("fk", batch + [j, e], phi(k.at()))
    if d.chance(0.6):
        s = d.let("s", batch + [i, j], d.sum([e], fq.at() * fk.at()))
        return d.let("o", batch + [i, f], d.sum([j], s.at() * v.at()) / d.sum([j], s.at()))
    kv = d.let("kv", d.shuffled(batch + [e, f]), d.sum([j], d.one(fk.at() * v.at(), v.at() * fk.at())))
    z = d.let("z", batch + [e], d.sum([j], fk.at()))
    o = d.sum([e], fq.at() * kv.at())
    if d.chance(0.7):
        o = o / (d.sum([e], fq.at() * z.at()) + d.one(0.5, 1))
    return d.let("o", d.shuffled(batch + [i, f]), o)


def embedding(d):
    if not d.have("embedding"):
        return None
    keys = [d.key("b", d.dim("B", "batch")), d.key("n", d.dim("N", "length")), d.key("d", d.dim("D", "width"))]
    V = d.dim("V", "side")
    ids = d.input("ids", keys[:2], "i32", ("integer", 0, V.name))
    d.dims[V.name] = "head"  # never 0: an id needs a row
    word = d.input("word", ["v", keys[2]], shape=(V, d.extents[keys[2]]))
    return d.let("x", keys, word.at(v=ids.at())), keys


def integers(d):
    """i8 times i8 sums in i32; a scale makes it real."""
    if not d.have("integer product"):
        return None
    n, k, o = (d.key(s, d.dim(s.upper(), "width")) for s in "nko")
    a, b = d.input("qa", [n, k], "i8", ("integer", -128, 128)), d.input("qb", d.shuffled([k, o]), "i8", ("integer", -128, 128))
    y = d.let("acc", [n, o], d.sum([k], a.at() * b.at()))
    if d.chance(0.4):
        return y
    return d.let("y", [n, o], y.at() * d.input("scale", [o]).at())
