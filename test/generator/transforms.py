"""What happens to queries and keys before their product: norms, rotary embeddings, feature maps, casts, projections, in any order."""
import math

from draw import *

feature("l2 norm", "rms norm", "layer norm", "rotary halves", "rotary pairs", "feature map", "storage cast", "scaled operand",
        "projection", "bias vector", "renamed axes", "function of tensors", "partial rotary")


def transform(d, t, rows, widths):
    """t after up to three steps. `rows`: its positions, `widths`: the indices over which it is contracted."""
    steps = [l2, rms, layer, rotary, mapped, cast, scaled, projected, biased, relabelled]
    d.random.shuffle(steps)
    done = 0
    for step in steps:
        if done < 3 and d.chance(0.35):
            new = step(d, t, rows, widths)
            done += new is not None
            t = new or t
    return t


def l2(d, t, rows, widths):
    if d.have("l2 norm"):
        e = widths[-1]
        inside = d.name("z")
        d.extents[inside] = d.extents[e]
        size = d.sum([inside], t.at(**{e: inside}) ** 2)
        return d.let(t.name, t.keys, d.one(t.at() / Call("sqrt", (size + 1e-3,)), t.at() * Call("rsqrt", (size + 1e-3,)),
                                           t.at() / Call("max", (Call("sqrt", (size,)), Num(1e-2)))))


def rms(d, t, rows, widths):
    if d.have("rms norm"):
        e = widths[-1]
        size = d.let("ms", [k for k in t.keys if k != e], d.sum([e], t.at() ** 2, op="mean"))
        g = d.input("gain", [e])
        return d.let(t.name, t.keys, t.at() * Call("rsqrt", (size.at() + 1e-2,)) * g.at())


def layer(d, t, rows, widths):
    if d.have("layer norm"):
        e = widths[-1]
        rest = [k for k in t.keys if k != e]
        if d.have("function of tensors", 0.5):
            f = function(d, "norm", lambda x, D: [
                Equation("mu", (Index("n", Name("P")),), Reduce("mean", (Index("d", D),), x)),
                Equation("c", (Index("n", Name("P")), Index("d", D)), x - Read("mu", (Name("n"),))),
                Equation("y", (Index("n", Name("P")), Index("d", D)), Read("c", (Name("n"), Name("d"))) / Call("sqrt", (
                    Reduce("mean", (Index("d", D),), Read("c", (Name("n"), Name("d"))) ** 2) + 0.01,)))])
            if len(rest) == 1:
                keys = rest + [e]
                flat = t if t.keys == keys else d.let("xt", keys, t.at())
                name = d.name(t.name)
                d.body.append(Apply((name,), f, (flat.name,)))
                return T(name, [(k, d.extents[k]) for k in keys])
        c = d.let("c", t.keys, t.at() - Reduce("mean", (d.index(e),), t.at()))
        return d.let(t.name, t.keys, c.at() / Call("sqrt", (d.sum([e], c.at() ** 2, op="mean") + 0.01,)))


def function(d, name, body):
    if not any(isinstance(f, Function) and f.name == name for f in d.functions):
        d.functions.append(Function(name, (("x", (Name("P"), Name("Q"))),), (), tuple(body(Read("x", (Name("n"), Name("d"))), Name("Q"))), ("y",)))
    return name


def rotary(d, t, rows, widths):
    """Both pairings, over an even width 2*R; the angle from the position in f64 or from a table."""
    halves = d.pick(["rotary halves", "rotary pairs"])
    if not halves or not rows:
        return None
    e = widths[-1]
    r = d.key("r", d.dim("R", "half"))
    R = d.extents[r]
    u = d.key("u", R * 2)
    w = d.input("turn", [e, u], recipe=("weight", "2"))  # to an even width
    x = d.let(t.name + "r", [u if k == e else k for k in t.keys], d.sum([e], t.at() * w.at()))
    at, U = Name(rows[0]), Name(u)
    partner = (lambda k: (U + R, U - R)) if halves == "rotary halves" else (lambda k: (U + 1, U - 1))
    first = U < R if halves == "rotary halves" else (U % 2).eq(0)
    pair = U % R if halves == "rotary halves" else U // 2
    up, down = partner(u)
    if d.have("partial rotary", 0.3):
        first_only = U < R
        turned = x.at() * Call("cos", (at * 0.5,)) - x.at() * Call("sin", (at * 0.25,))
        return contracted(d, t, e, u, If(first_only, turned, x.at()), rows, widths)
    angle = at * (Num(10.0) ** (Num(-2) * pair / (R * 2)))
    if d.chance(0.5):
        table = d.let("ang", [rows[0], u], angle)
        angle = table.at()
    cos, sin = Call("cos", (angle,)), Call("sin", (angle,))
    if d.chance(0.5):
        turned = x.at() * cos + (If(first, -x.at(**{u: up}), x.at(**{u: down}))) * sin
    else:
        sides = x.at() * cos - x.at(**{u: up}) * sin, x.at() * cos + x.at(**{u: down}) * sin
        turned = If(U >= R, *sides[::-1]) if halves == "rotary halves" and d.chance(0.4) else If(first, *sides)
    return contracted(d, t, e, u, turned, rows, widths)


def contracted(d, t, e, u, body, rows, widths):
    """The turned tensor, and back to the width that the other side of the product has."""
    keys = [u if k == e else k for k in t.keys]
    y = d.let(t.name + "t", keys, body)
    w = d.input("back", [u, e], recipe=("weight", "2"))
    return d.let(t.name, t.keys, d.sum([u], y.at() * w.at()))


def mapped(d, t, rows, widths):
    if d.have("feature map"):
        x = t.at()
        body = d.one(Call("elu", (x,)) + 1, Call("relu", (x,)), Call("tanh", (x,)), Call("exp", (x * 0.5,)), Call("silu", (x,)), *([x ** 2, Call("relu", (x,)) ** 2] * d.have("powers")),
                     Call("gelu", (x,)), Call("sigmoid", (x,)), Call("softplus", (x,)), Call("abs", (x,)),
                     Call("clamp", (x, Num(-0.5), Num(0.75))), Call("cos", (x,)), Call("gelu_tanh", (x,)))
        if d.chance(0.3):
            name = "fn_" + d.name("phi")
            d.functions.append(Scalar(name, ("z",), rebuild(body, lambda n: Name("z") if n == x else n)))
            return d.let(t.name, t.keys, Call(name, (x,)))
        return d.let(t.name, t.keys, body)


def cast(d, t, rows, widths):
    if d.have("storage cast"):
        return d.let(t.name, t.keys, Call("f32", (Call(d.one("f16", "bf16"), (t.at(),)),)))


def scaled(d, t, rows, widths):
    if d.have("scaled operand"):
        return d.let(t.name, t.keys, d.one(t.at() * 0.5, t.at() / Call("sqrt", (d.extents[widths[0]] + 1,)), -t.at(), *([t.at() * t.at()] * d.have("powers"))))


def projected(d, t, rows, widths):
    if d.have("projection"):
        e = widths[-1]
        z = d.key("z", d.extents[e])
        w = d.input("w", d.shuffled([z, e], 0.5), recipe=("weight", "3"))
        return d.let(t.name, t.keys, d.sum([z], t.at(**{e: z}) * w.at()))


def biased(d, t, rows, widths):
    if d.have("bias vector"):
        b = d.input("b", [k for k in t.keys if k in widths or d.chance(0.2)])
        return d.let(t.name, t.keys, t.at() + b.at())


def relabelled(d, t, rows, widths):
    if d.have("renamed axes"):
        keys = list(t.keys)
        d.random.shuffle(keys)
        return d.let(t.name, keys, t.at())
