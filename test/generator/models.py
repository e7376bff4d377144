"""Draws whole models: blocks in sequence, what is returned, which dims are numbers in the text."""
import random

import blocks
from attention import attention
from draw import *
from inputs import INFINITE, MASKED
from ranges import same, settle
from respell import respelled
import planned
import recurrences
import sizes

feature("intermediate result", "respelled", "two attentions", "parameters")


def network(d):
    """The tensor that a model is about."""
    kind = d.one("attention", "attention", "attention", "stream", "stream", "chain", "embedding", "integers", "linear", "linear", "projections", "projections",
                 "long", "columns", "columns", "layers", "rows", "rows", "reductions", "recurrence", "recurrence")
    if kind == "stream":
        x, keys = blocks.walk_blocks(d, *blocks.stream(d))
        return blocks.ending(d, x, keys)
    if kind in ("rows", "reductions"):
        x, keys = blocks.stream(d)
        return blocks.reductions(d, x, keys) if kind == "reductions" else blocks.ending(d, *(d.one(blocks.norm, blocks.distribution)(d, x, keys) or (x, keys)))
    if kind == "layers":
        x, keys = blocks.stream(d)
        return blocks.ending(d, *(blocks.loop(d, x, keys) or blocks.walk_blocks(d, x, keys)))
    if kind == "recurrence":
        x, keys = blocks.stream(d)
        return blocks.ending(d, *(recurrences.recurrence(d, x, keys) or recurrences.prefix(d, x, keys) or blocks.walk_blocks(d, x, keys)))
    if kind == "long":
        return planned.long_attention(d) or attention(d)
    if kind == "columns":
        return planned.columns_of_heads(d) or attention(d)
    if kind == "projections":
        return blocks.projections(d) or attention(d)
    if kind == "linear":
        return recurrences.causal_sum(d) or blocks.linear_attention(d) or attention(d)
    if kind == "chain":
        return blocks.chain(d) or attention(d)
    if kind == "embedding":
        made = blocks.embedding(d)
        return blocks.ending(d, *blocks.walk_blocks(d, *made)) if made else attention(d)
    if kind == "integers":
        return blocks.integers(d) or attention(d)
    o = attention(d)
    if d.have("output projection", 0.3):
        z = d.key("z", d.dim("Z", "width"))
        o = d.let("o", [k for k, _ in o.axes[:-1]] + [z], blocks.linear(d, o, [k for k, _ in o.axes], z)) if o.axes else o
    if d.have("residual", 0.2):
        r = d.input("r", [k for k, _ in o.axes])
        o = d.let("o", [k for k, _ in o.axes], r.at() + o.at())
    return o


def binds(inputs, dim):
    """Does an extent name the dim and no other?"""
    return any({m.name for m in walk(n) if isinstance(m, Name)} == {dim} for x in inputs for n in x.shape)


def fits(sizes, multiples):
    """Is each size that should be a multiple of another's one? Of 0 only 0 is."""
    return all(sizes[n] % sizes[of] == 0 if sizes[of] else sizes[n] == 0 for n, of in multiples.items())


def edges(d, static):
    """Sizes where every length is beyond the tiles of a schedule, and sizes with a free length, or width, of 0."""
    free = [n for n in d.dims if n not in static and n not in d.multiples and d.dims[n] in ("length", "width")]
    found = []
    if any(d.dims[n] == "length" for n in free):
        found.append(sizes.draw(d.random, d.dims, d.multiples, 6000000, long=True))
        # Long ones beside one of 0 or 1.
        other = [n for n in d.dims if n not in static and n not in d.multiples and d.dims[n] != "head"]
        if len(other) > 1 and d.chance(0.5):
            found.append({**sizes.draw(d.random, d.dims, d.multiples, 2000000, long=True), d.random.choice(other): d.one(0, 1, 1)})
    for role in ("length", "width"):
        empty = [n for n in free if d.dims[n] == role]
        if empty:
            found.append({**sizes.draw(d.random, d.dims, d.multiples, 400000, small=True), d.random.choice(empty): 0, "poison": 2})
    for more in found:
        more.update(static)
        for name, of in d.multiples.items():
            if name not in static:
                more[name] = more[of]
    return [more for more in found if fits(more, d.multiples)]


def unsayable(model):
    """Does the text have no place for a range that it needs: of an index of a merged axis, or of a part that is joined?"""
    shapes = {x.name: x.shape for x in model.inputs}
    for s in model.body:
        if isinstance(s, Equation):
            if any(isinstance(x, Merged) and (x.outer.shown or x.inner.shown) and not plain(s.right, (x.outer, x.inner), shapes) for x in s.left):
                return True
            if isinstance(s.right, Concat) and any(not same(part, s.right.name, n, shapes) for n, part in s.right.parts):
                return True
            if not any(isinstance(x, Expr) for x in s.left):
                shapes[s.name] = tuple(x.outer.extent * x.inner.extent if isinstance(x, Merged) else x.extent for x in s.left)
        elif isinstance(s, (Apply, Let, For, Scan)):
            shapes.update({n: None for n in getattr(s, "names", ())})
            shapes.update(dict(getattr(s, "rows", ())))
    return False


def plain(right, indices, shapes):
    return all(same(right, x.name, x.extent, shapes) for x in indices)


def drawn(seed, number, off=()):
    """The model, size tuples for it, and the model that it is an equal respelling of, or None."""
    d = Draw(seed, number, off)
    o = network(d)
    results = [o.name] + d.also
    if d.have("two attentions", 0.15):
        results.append(attention(d).name)
    if d.have("intermediate result", 0.3):
        named = [s.name for s in d.body if isinstance(s, Equation) and s.name not in results]
        if named:
            results.append(d.random.choice(named))
    first = sizes.draw(d.random, d.dims, d.multiples, 400000)
    static = []
    if d.have("parameters", 0.9):
        for k, x in enumerate(d.inputs):
            # Sums with weights, their biases and gains.
            if x.type == "f32" and x.param is None and (x.recipe[0] == "weight" or len(x.shape) == 1 and x.name[0] in "bg"):
                d.inputs[k] = replace(x, param=0)
    fixed = d.fixed | {m.name for x in d.inputs if x.param is not None for n in x.shape for m in walk(n) if isinstance(m, Name)}
    static += [(n, first[n]) for n in d.dims if n in fixed]
    if d.have("static", 0.6):
        share = d.one(0.3, 1.0)
        static += [(n, size) for n, size in first.items() if n not in fixed and d.chance(share)]
    plain = d.model(results, static)
    other = respelled(plain, d.random) if d.have("respelled") else None
    static += [(n, first[n]) for n in d.dims if n not in dict(static) and not binds(plain.inputs, n)]
    plain, other = (m and replace(m, static=tuple(static)) for m in (plain, other))
    if other and unsayable(settle(other)):
        other = None
    # Not of the draws that make the model, so that it stays what it is.
    held = random.Random(f"{seed}/{number}/held").choice([None, None, "bf16", "f16"])
    plain, other = (m and replace(m, inputs=tuple(replace(x, held=held) if x.param is not None and x.type == "f32" else x for x in m.inputs))
                    for m in (plain, other))
    model = settle(replace(other or plain, features=frozenset(d.used)), lambda: d.chance(0.1))
    tuples = [first]
    for k in range(3):
        more = sizes.draw(d.random, d.dims, d.multiples, 400000, small=k == 2)
        more.update(dict(static))
        for name, of in d.multiples.items():
            if name not in dict(static):
                more[name] = more[of] * d.one(1, 2, 3)
        if fits(more, d.multiples):
            tuples.append(more)
    tuples += edges(d, dict(static))
    spoiled = {**sizes.draw(d.random, d.dims, d.multiples, 30000), **dict(static), "poison": INFINITE}
    tuples += [spoiled] if fits(spoiled, d.multiples) else []
    # NaN behind the lengths, or anywhere.
    for sizes_, poison in zip(tuples, (0, MASKED, 1, MASKED)):
        sizes_.setdefault("poison", poison)
    return model, tuples, plain if other else None
