"""How a model uses its dims: what the metamorphic oracles may change follows from this alone."""
from dataclasses import dataclass, field

from tree import *


@dataclass
class Uses:
    """Of dims, by name. `placed`: some index over it stands elsewhere than plainly in a read of an axis of this very dim, so its elements have
    an order. `valued`: its size is a number of the model. `summed`: some reduction or softmax runs over it. `open`: some of those without a
    `where` that ends at a length. `shapes`: extents of each tensor, None where they are not known."""
    shapes: dict = field(default_factory=dict)
    placed: set = field(default_factory=set)
    valued: set = field(default_factory=set)
    summed: set = field(default_factory=set)
    open: set = field(default_factory=set)


def names(*nodes):
    return {n.name for e in nodes for n in walk(e) if isinstance(n, Name)}


def uses(model):
    u = Uses({x.name: x.shape for x in model.inputs})
    for x in model.inputs:
        extents(u, x.shape)
    statements(u, model.body)
    return u


def extents(u, shape):
    """A dim within another extent has its place there, and its number."""
    for n in shape:
        if not isinstance(n, Name):
            u.placed |= names(n)
            u.valued |= names(n)


def statements(u, body):
    for s in body:
        if isinstance(s, For):
            statements(u, s.body)
        elif isinstance(s, Scan):
            u.placed |= names(s.lo, s.hi)
            u.valued |= names(s.lo, s.hi)
            for name, at, _ in s.states:
                u.shapes[name] = tuple(x.extent for x in at)
            statements(u, s.body)
            u.shapes.update(dict(s.rows))
        elif isinstance(s, Let):
            u.shapes[s.name] = s.shape
            extents(u, s.shape)
        elif isinstance(s, Apply):
            for a in s.args:
                u.placed |= names(*(u.shapes[a] or ()))
                u.valued |= names(*(u.shapes[a] or ()))
            u.shapes.update({n: None for n in s.names})
        elif isinstance(s, Equation):
            own = {}
            for x in s.left:
                if isinstance(x, Merged):
                    u.placed |= names(x.outer.extent, x.inner.extent)
                    u.valued |= names(x.outer.extent, x.inner.extent)
                for y in [x.outer, x.inner] if isinstance(x, Merged) else [x] if isinstance(x, Index) else []:
                    own[y.name] = y.extent
                    extents(u, (y.extent,))
            if isinstance(s.right, Concat):
                for n, part in s.right.parts:
                    u.placed |= names(n, own[s.right.name])
                    u.valued |= names(n, own[s.right.name])
                    visit(u, part, {**own, s.right.name: n})
            else:
                visit(u, s.right, own)
            if not any(isinstance(x, Expr) for x in s.left):
                u.shapes[s.name] = tuple(x.outer.extent * x.inner.extent if isinstance(x, Merged) else x.extent for x in s.left)


def ends_at_length(where, index):
    """Does the condition hold only below a length that an input holds?"""
    if isinstance(where, Bin) and where.op == "and":
        return ends_at_length(where.a, index) or ends_at_length(where.b, index)
    return isinstance(where, Bin) and where.op == "<" and where.a == Name(index) and isinstance(where.b, Read)


def visit(u, e, own):
    """`own`: the extents of the indices in scope."""
    if isinstance(e, tuple):
        for x in e:
            visit(u, x, own)
    elif isinstance(e, Name):
        if e.name in own:
            u.placed |= names(own[e.name])
        else:
            u.valued.add(e.name)
    elif isinstance(e, Read):
        shape = u.shapes.get(e.tensor)
        for k, x in enumerate(e.index):
            if isinstance(x, Name) and x.name in own and shape and shape[k] == own[x.name]:
                continue
            u.placed |= names(*([shape[k]] if shape else []))
            visit(u, x, own)
    elif isinstance(e, Reduce):
        extents(u, [b.extent for b in e.binders])
        for b in e.binders:
            u.summed |= names(b.extent)
            if e.op == "argmax":
                u.placed |= names(b.extent)
            if not ends_at_length(e.where, b.name):
                u.open |= names(b.extent)
        own = {**own, **{b.name: b.extent for b in e.binders}}
        visit(u, tuple(x for x in (e.body, e.where) if x is not None), own)
    elif hasattr(e, "__dataclass_fields__"):
        if isinstance(e, Softmax):
            for n in e.names:
                u.summed |= names(own[n])
                if not ends_at_length(e.where, n):
                    u.open |= names(own[n])
        visit(u, tuple(children(e)), own)


def linear_inputs(model, results):
    """Inputs in which every one of the results is linear: twice the input is twice the result."""
    return [x.name for x in model.inputs if x.type == "f32" and x.recipe[0] in ("real", "weight") and all(
        degrees(model, x.name).get(r) == 1 for r in results)]


def degrees(model, name):
    """tensor: 0 if it does not follow from the input, 1 if it does linearly, None otherwise."""
    known = {x.name: int(x.name == name) for x in model.inputs}

    def walk_body(body):
        for s in body:
            if isinstance(s, For):
                for _ in range(3):  # until what a turn hands on is known
                    walk_body(s.body)
            elif isinstance(s, Scan):
                known.update({name: known[start] if isinstance(start, str) else 0 if start == Num(0.0) else None for name, _, start in s.states})
                known.update({name: 0 for name, _ in s.rows})
                for _ in range(3):
                    walk_body(s.body)
            elif isinstance(s, Let):
                known[s.name] = 0
            elif isinstance(s, Apply):
                known.update({n: 0 if all(known[a] == 0 for a in s.args) else None for n in s.names})
            elif isinstance(s, Equation):
                d = join([degree(part, known) for _, part in s.right.parts]) if isinstance(s.right, Concat) else degree(s.right, known)
                if any(isinstance(x, Expr) for x in s.left):
                    d = None if d or known[s.name] else d
                known[s.name] = d
    walk_body(model.body)
    return known


def join(ds):
    """Of a sum: all linear, or none at all."""
    return ds[0] if all(d == ds[0] for d in ds) else None


def degree(e, known):
    if isinstance(e, Read):
        d = known.get(e.tensor, 0)
        return d if all(degree(x, known) == 0 for x in e.index) else None
    if isinstance(e, Bin) and e.op in "+-":
        return join([degree(e.a, known), degree(e.b, known)])
    if isinstance(e, Bin) and e.op == "*":
        a, b = degree(e.a, known), degree(e.b, known)
        return a + b if a is not None and b is not None and a + b < 2 else None
    if isinstance(e, Bin) and e.op == "/":
        return degree(e.a, known) if degree(e.b, known) == 0 else None
    if isinstance(e, Un) and e.op == "-":
        return degree(e.a, known)
    if isinstance(e, If) and degree(e.cond, known) == 0:
        parts = [degree(x, known) for x in (e.a, e.b) if x != Num(0.0)]
        return join(parts) if parts else 0
    if isinstance(e, Reduce) and e.op in ("sum", "mean") and (e.where is None or degree(e.where, known) == 0):
        return degree(e.body, known)
    return 0 if all(degree(x, known) == 0 for x in flat(children(e))) else None


def flat(nodes):
    """The nodes alone, with tuples of them opened."""
    return [y for x in nodes for y in (flat(x) if isinstance(x, tuple) else [x]) if hasattr(y, "__dataclass_fields__")]
