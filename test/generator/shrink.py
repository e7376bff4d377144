"""Makes a failing model small: drops equations, puts an input in the place of a tensor, simplifies expressions, then sizes.

A reduction is kept only if the failure stays of the same kind (and, where passes are looked behind, of the same pass).
"""
from ranges import settle
from tree import *


def shrink(model, tuples, fails, limit=150):
    """`fails(model, tuples)` gives the failure's kind or None. Returns the smallest model and its sizes."""
    kind = fails(model, tuples)
    if kind is None:
        return model, tuples
    left = [limit]

    def keeps(candidate, sizes):
        if left[0] <= 0:
            return False
        left[0] -= 1
        try:
            return fails(candidate, sizes) == kind
        except Exception:
            return False
    tuples = next(([t] for t in tuples if keeps(model, [t])), tuples)
    changed = True
    while changed and left[0] > 0:
        changed = False
        for candidate in candidates(model):
            candidate = tidy(candidate)
            if candidate != model and size(candidate) < size(model) and keeps(candidate, tuples):
                model, changed = candidate, True
                break
    return model, smaller_sizes(model, tuples, keeps)


def size(model):
    """Inputs weigh less than what is computed."""
    return sum(3 for n in walk(model.body)) + sum(1 for n in walk(model.inputs)) + 4 * len(model.results) + 2 * len(model.functions)


def tidy(model):
    """Without what no result needs; ranges shown where they must be."""
    needed, body = set(model.results), []
    for s in reversed(model.body):
        if isinstance(s, Equation):
            if s.name not in needed:
                continue
            if not any(isinstance(x, Expr) for x in s.left) and s.name not in reads(s):
                needed.discard(s.name)
        elif isinstance(s, Apply) and not needed & set(s.names):
            continue
        needed |= reads(s)
        body.append(s)
    body = tuple(reversed(body))
    calls = {n.f for n in walk(body) if isinstance(n, (Call, Apply))}
    calls |= {n.f for f in model.functions if f.name in calls for n in walk(f) if isinstance(n, Call)}
    model = replace(model, body=body, inputs=tuple(x for x in model.inputs if x.name in needed),
                    functions=tuple(f for f in model.functions if f.name in calls))
    return settle(model)


def shape(s):
    return tuple(x.outer.extent * x.inner.extent if isinstance(x, Merged) else x.extent for x in s.left)


def candidates(model):
    """Smaller models, the boldest first."""
    if len(model.results) > 1:
        for r in model.results:
            yield replace(model, results=(r,))
    names = [s.name for s in model.body if isinstance(s, Equation)]
    # A tensor becomes an input, and what made it falls away.
    for k in reversed(range(len(model.body))):
        s = model.body[k]
        if isinstance(s, Equation) and all(not isinstance(x, Expr) for x in s.left) and s.name not in model.results:
            if any(isinstance(n, Softmax) for n in walk(s.right)):
                continue  # its absent elements would go
            fresh = next(f"x{n}" for n in range(99) if f"x{n}" not in names + [x.name for x in model.inputs])
            rest = rebuild(model.body[k + 1:], lambda n: replace(n, tensor=fresh) if isinstance(n, Read) and n.tensor == s.name else n)
            if names.count(s.name) == 1:
                yield replace(model, inputs=model.inputs + (Input(fresh, "f32", shape(s)),), body=model.body[:k] + rest)
    # A tensor becomes the result.
    for k, s in enumerate(model.body[:-1]):
        if isinstance(s, Equation) and all(not isinstance(x, Expr) for x in s.left) and s.name not in model.results:
            yield replace(model, body=model.body[:k + 1], results=(s.name,))
    # Parts of expressions fall away.
    for k, s in enumerate(model.body):
        if isinstance(s, Equation):
            seen = set()
            for n in walk(s.right):
                if not isinstance(n, Expr) or n in seen:
                    continue
                seen.add(n)
                for by in simpler(n):
                    new = rebuild(s.right, lambda m: by if m == n else m)
                    yield replace(model, body=model.body[:k] + (replace(s, right=new),) + model.body[k + 1:])
    for k, x in enumerate(model.inputs):
        if x.type in ("f16", "bf16"):
            yield replace(model, inputs=model.inputs[:k] + (replace(x, type="f32"),) + model.inputs[k + 1:])


def simpler(n):
    if isinstance(n, Bin) and n.op in ("+", "-", "*", "/", "^", "and", "or"):
        yield n.a
        if n.op in ("+", "*", "and", "or"):
            yield n.b
    if isinstance(n, Un):
        yield n.a
    if isinstance(n, Call) and n.f not in ("i32", "bool") and n.args:
        yield n.args[0]
    if isinstance(n, If):
        yield n.a
        yield n.b
    if isinstance(n, Reduce):
        if n.where is not None:
            yield replace(n, where=None)
        if len(n.binders) > 1:
            for b in n.binders:
                yield replace(n, binders=tuple(x for x in n.binders if x != b))
    if isinstance(n, Softmax):
        if n.where is not None:
            yield replace(n, where=None)
        if n.sink is not None:
            yield replace(n, sink=None)


def smaller_sizes(model, tuples, keeps):
    static = dict(model.static)
    named = {n.name for n in walk((model.inputs, model.body)) if isinstance(n, Name)}
    sizes = {name: n for name, n in tuples[0].items() if name in named or name == "poison"}
    for name in sizes:
        if name not in static and name != "poison":
            for n in (0, 1, 2, 3, 5, 9, 17):
                if n < sizes[name] and keeps(model, [{**sizes, name: n}]):
                    sizes[name] = n
                    break
    return [sizes]
