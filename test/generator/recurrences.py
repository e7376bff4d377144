"""Productions of recurrences: a stream's rows one after the other, through states of the same axes or of one more, in either direction."""
from draw import *
from masks import text

feature("recurrence", "counted back", "matrix state", "second state", "frozen rows", "given start", "step layout", "mixed state", "delta rule", "bonus", "stabilised", "causal sum", "decayed sum", "prefix", "prefix mask",
        "prefix argmax", "masked causal sum", "keys of all heads", "several products", "decay of elements")


def recurrence(d, x, keys):
    """x with its rows [.., n, i] run through a scan, over the same keys."""
    if len(keys) < 2 or len(keys) > 3 or not d.have("recurrence"):
        return None
    scan = Steps(d, x, keys)
    if d.have("matrix state", 0.4):
        scan.matrix()
    else:
        scan.vector()
    return scan.close(), keys


def causal_sum(d):
    """sum_(j <= i) (q_i . k_j) decay^(i - j) v_j, the decays a number each or of each step; strict or not."""
    if not d.have("causal sum", 0.4):
        return None
    batch = [d.key("b", d.dim("B", "batch"))] * d.chance(0.5) + [d.key("h", d.dim("H", "head"))] * d.chance(0.5)
    i = d.key("i", d.dim("N", "length"))
    j, e, f = d.key("j", d.extents[i]), d.key("e", d.dim("E", "width")), d.key("f", d.dim("F", "width"))
    own = batch[:-1] if batch and d.have("keys of all heads", 0.3) else batch
    q, k, v = (d.input(s, d.shuffled(keys, 0.3)) for s, keys in (("q", own + [i, e]), ("k", own + [j, e]), ("v", batch + [j, f])))
    s = d.sum([e], q.at() * k.at())
    if d.chance(0.5):
        s = d.let("s", own + [i, j], s).at()
    parts = [s, v.at()]
    if d.have("decayed sum", 0.6):
        if d.chance(0.5):
            base = Num(d.one(0.5, 0.9)) if d.chance(0.3) else Call("exp", (-Call("abs", (d.input("g", batch[-1:]).at(),)),))
            parts.append(base ** (Name(i) - Name(j) - d.one(0, 0, 1)))
        else:
            w = d.key("w", d.extents[i])
            g = d.input("g", batch[-1:] + [w])
            c = d.let("c", batch[-1:] + [i], d.sum([w], -Call("abs", (g.at(),)), Name(w) <= Name(i)))
            parts.append(Call("exp", (c.at() - c.at(**{i: Name(j)}),)))
    d.random.shuffle(parts)
    body = parts[0]
    for part in parts[1:]:
        body = body * part
    seen = d.one(Name(j) <= Name(i), Name(j) < Name(i))
    if d.have("masked causal sum", 0.4):
        mask = prefix_mask(d, batch + [i, f], i, j)
        seen = d.one(seen & mask, mask & seen)
    return d.let("o", d.shuffled(batch + [i, f]), d.sum([j], body, seen))


def prefix(d, x, keys):
    """What comes before each row of x, or behind it, reduced."""
    if len(keys) < 2 or not d.have("prefix", 0.3):
        return None
    n = keys[-2]
    j = d.key("j", d.extents[n])
    body, op = d.one((x.at(**{n: Name(j)}), "sum"), (x.at(**{n: Name(j)}) * 0.25 + 1, "prod"), (x.at(**{n: Name(j)}), "max"),
                     (x.at(**{n: Name(j)}), "min"), (x.at(**{n: Name(j)}), "mean"))
    ends = d.one(Name(j) <= Name(n), Name(j) < Name(n), Name(n) <= Name(j), Name(n) < Name(j))
    if op in ("prod", "mean"):
        ends = Name(j) <= Name(n)
    elif op == "sum" and d.chance(0.5):  # stabilised by the maximum of what it sums, with a factor of the key and one of the query
        ends = d.one(Name(j) <= Name(n), Name(n) <= Name(j))
        top = d.let("top", keys, Reduce("max", (d.index(j),), body, ends))
        body = Call("exp", (body - top.at(),))
        if d.chance(0.5):
            body = d.one(body * x.at(**{n: Name(j)}), x.at() * body)
    elif d.have("prefix argmax", 0.3):
        op = "argmax"
    if op != "prod" and d.have("prefix mask", 0.4):
        ends = d.one(ends & prefix_mask(d, keys, n, j), prefix_mask(d, keys, n, j) & ends)
    y = d.let("y", d.shuffled(list(keys)), Reduce(op, (d.index(j),), body, ends))
    return (y if op != "argmax" else d.let("z", keys, x.at() + y.at() * 0.125)), keys


def prefix_mask(d, keys, n, j):
    """What else a key fulfils: a mask, a length, the segment of the row."""
    batch = [k for k in keys[:-2] if d.chance(0.5)]
    kind = d.pick(["mask", "length", "segment"])
    if kind == "mask":
        return d.input("keep", d.shuffled(batch + [j]), "bool", ("bool",)).at()
    if kind == "length":
        return Name(j) < d.input("len", batch, "i32", ("integer", 0, f"{text(d.extents[n])} + 1")).at()
    segments = d.input("seg", batch + [n], "i32", (d.one("sorted", "sorted", "integer"), 0, d.one(2, 4)))
    return segments.at().eq(segments.at(**{n: Name(j)}))


class Steps:
    """A scan under construction."""

    def __init__(self, d, x, keys):
        self.d, self.x, self.keys = d, x, keys
        self.n, self.others = keys[-2], [k for k in keys if k != keys[-2]]
        self.count = d.extents[self.n]
        self.t = d.name("t")
        self.at = self.count - 1 - Name(self.t) if d.have("counted back", 0.4) else Name(self.t)
        self.states, self.body = [], []

    def row(self, tensor):
        return tensor.at(**{self.n: self.at})

    def state(self, stem, keys, start=0.0):
        name = self.d.name(stem)
        if start == 0.0 and self.d.have("given start", 0.3):
            start = self.d.input("s", keys).name
        self.states.append((name, tuple(self.d.index(k) for k in keys), Num(start) if isinstance(start, float) else start))
        return T(name, [(k, self.d.extents[k]) for k in keys])

    def line(self, tensor, right):
        self.body.append(Equation(tensor.name, tuple(self.d.index(k) for k, _ in tensor.axes), right))

    def local(self, stem, keys, right):
        name = self.d.name(stem)
        tensor = T(name, [(k, self.d.extents[k]) for k in keys])
        self.line(tensor, right)
        return tensor

    def decay(self, keys):
        """Between 0 and 1: a number, of each channel, or what the row says."""
        d = self.d
        kind = d.random.randrange(4)
        if kind == 0:
            return Num(d.one(0.5, 0.875, 0.0, 1.0))
        if kind == 1:
            return Call("sigmoid", (d.input("g", keys[-1:]).at(),))
        if kind == 2:
            return Call("sigmoid", (self.row(self.x),)) if set(self.others) <= set(keys) else Num(0.75)
        return Call("exp", (-Call("abs", (d.input("g", [k for k in keys if d.chance(0.6)]).at(),)),))

    def frozen(self, old, new):
        """Beyond a length the state stays."""
        batch = self.others[:-1]
        if not batch or not self.d.have("frozen rows", 0.3):
            return new
        length = self.d.input("len", batch, "i32", ("integer", 0, f"{text(self.count)} + 1"))
        return If(Name(self.t) < length.at(), new, old)

    def vector(self):
        d, i = self.d, self.others[-1]
        s = self.state("h", self.others)
        entering = self.row(self.x)
        if d.chance(0.4):
            j = d.key("j", d.extents[i])
            w = d.input("w", [i, j], recipe=("weight", "4"))
            entering = d.sum([j], self.x.at(**{self.n: self.at, i: Name(j)}) * w.at())
            if d.chance(0.5):
                entering = self.local("u", self.others, entering).at()
        if d.have("mixed state", 0.4):
            j = d.key("j", d.extents[i])
            u = d.input("w", [i, j], recipe=("weight", "4"))
            new = Call("tanh", (d.sum([j], s.at(**{i: Name(j)}) * u.at()) * 0.5 + entering,))
        else:
            new = d.one(lambda: self.decay(self.others) * s.at() + entering,
                        lambda: Call("tanh", (s.at() * 0.5 + entering,)),
                        lambda: s.at() + (entering - s.at()) * 0.25)()
        out = s.at()
        if d.have("second state", 0.4):
            top = self.state("top", self.others, d.one(0.0, float("-inf"))) if d.chance(0.5) else self.state("z", self.others)
            more = Call("max", (top.at(), s.at())) if top.name.startswith("top") else self.decay(self.others) * top.at() + s.at() * 0.5
            lines = [(s, self.frozen(s.at(), new)), (top, more)]
            for tensor, right in lines if d.chance(0.6) else lines[::-1]:
                self.line(tensor, right)
            out = out + top.at()
        else:
            self.line(s, self.frozen(s.at(), new))
        self.out = out if d.chance(0.6) else out * 0.5 + self.row(self.x)

    def matrix(self):
        """S = a S + k v^T, read by q; a normaliser beside it at times."""
        d, i = self.d, self.others[-1]
        e = d.key("e", d.dim("E", "width"))
        batch = self.others[:-1]
        own = batch[:-1] if batch and d.have("keys of all heads", 0.3) else batch
        q, k = (d.input(stem, d.shuffled(own + [self.n, e])) for stem in "qk")
        S = self.state("S", d.shuffled(batch + [e, i]))
        a = self.decay([e]) if d.chance(0.5) else self.decay(self.others)
        if d.have("decay of elements", 0.3):  # a state-space model's: no product's, so rows sum over states that are each their own
            g = d.input("g", d.shuffled([e, i])).at()
            a = d.one(Call("exp", (-Call("abs", (g * self.row(self.x),)),)), Call("sigmoid", (g + self.row(q),)), Call("exp", (-Call("abs", (g,)),)))
        written = self.row(self.x)
        if d.have("delta rule", 0.3):
            c = d.key("c", d.extents[e])
            r = d.input("r", [self.n, e]) if d.chance(0.3) else k
            held = d.sum([c], r.at(**{self.n: self.at, e: Name(c)}) * S.at(**{e: Name(c)}))
            if d.chance(0.5):
                held = self.local("held", self.others, held).at()
            written = (written - held) * Num(0.0625)  # no state grows
        kv = self.row(k) * written
        if d.have("several products", 0.3):
            kv = d.one(kv + self.other_product(k, batch, e, i), kv - self.other_product(k, batch, e, i))
        after = d.chance(0.7)
        lines = []
        if batch and d.have("stabilised", 0.2):  # by a running maximum of gates
            top = self.state("top", batch, 0.0)
            lines.append((top, Call("max", (top.at() * 0.5, self.row(d.input("g", [*batch, self.n]))))))
            a = a * Call("exp", (-Call("abs", (top.at(),)),))
        update = (S, self.frozen(S.at(), a * S.at() + kv if d.chance(0.5) else kv + S.at() * a))
        held = S.at()
        if not after and d.have("bonus", 0.3):
            held = S.at() + d.input("u", [e]).at() * self.row(k) * self.row(self.x)
        read = d.sum([e], self.row(q) * held)
        lines.insert(d.random.randrange(len(lines) + 1), update) if after else None
        if d.have("second state", 0.3):
            z = self.state("z", batch + [e], 1.0)
            lines.append((z, z.at() * 0.5 + Call("abs", (self.row(k),))))
            read = read / (d.sum([e], Call("abs", (self.row(q),)) * z.at()) + 1.0)
        for tensor, right in lines:
            self.line(tensor, right)
        if not after:
            read = self.local("o", self.others, read).at()
            self.line(*update)
        self.out = read

    def other_product(self, k, batch, e, i):
        """Of another key and value, or of those of the step before, of which the first has none."""
        d = self.d
        if d.chance(0.5):
            return self.row(d.input("l", d.shuffled(batch + [self.n, e]))) * self.row(d.input("w", [self.n, i]))
        before = {self.n: self.at - 1 if isinstance(self.at, Name) else self.at + 1}
        product = k.at(**before) * self.x.at(**before)
        if d.chance(0.5):
            product = product * self.decay(batch + [e]) if d.chance(0.5) else self.decay(batch) * product
        return d.one(If(Num(0) < Name(self.t), product, Num(0.0)), If(Name(self.t) < 1, Num(0.0), product))

    def close(self):
        d = self.d
        name = d.name("y")
        axes = list(self.keys)
        if d.have("step layout", 0.4):
            d.random.shuffle(axes)
        left = tuple(self.at if k == self.n else d.index(k) for k in axes)
        self.body.append(Equation(name, left, self.out))
        shape = tuple(d.extents[k] for k in axes)
        d.body.append(Scan(self.t, Num(0), self.count, tuple(self.states), tuple(self.body), ((name, shape),)))
        if d.chance(0.3):
            d.also.append(d.one(*(s[0] for s in self.states)))
        return T(name, list(zip(axes, shape)))
