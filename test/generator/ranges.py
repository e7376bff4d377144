"""Which index ranges the text must say: an index whose range no plain read of its scope gives."""
from tree import *


def settle(model, always=lambda: False):
    """The model with `shown` set where it must be, and where `always()` likes."""
    shapes = {x.name: x.shape for x in model.inputs}
    functions = tuple(replace(f, body=body_of(f.body, dict(f.args), always)) if isinstance(f, Function) else f for f in model.functions)
    for f in functions:
        if isinstance(f, Function):
            shapes["fn " + f.name] = f
    return replace(model, body=body_of(model.body, shapes, always), functions=functions)


def body_of(body, shapes, always):
    out = []
    for s in body:
        if isinstance(s, Equation):
            own = [y for x in s.left for y in ([x.outer, x.inner] if isinstance(x, Merged) else [x] if isinstance(x, Index) else [])]
            right = inner(s.right, shapes, always)
            if isinstance(right, Concat):
                extents = {x.name: x.extent for x in own}
                show = {x.name: any(not same(part, x.name, n if x.name == right.name else x.extent, shapes) for n, part in right.parts) for x in own}
                show[right.name] = True
            else:
                show = {x.name: not same(right, x.name, x.extent, shapes) or x in s.left and always() for x in own}
            mark = lambda x: replace(x, shown=show[x.name])
            left = tuple(Merged(mark(x.outer), mark(x.inner)) if isinstance(x, Merged) else mark(x) if isinstance(x, Index) else x for x in s.left)
            out.append(replace(s, left=left, right=right))
            if not any(isinstance(x, Expr) for x in s.left):
                shapes[s.name] = tuple(x.outer.extent * x.inner.extent if isinstance(x, Merged) else x.extent for x in s.left)
        elif isinstance(s, Scan):
            shapes.update({name: tuple(x.extent for x in at) for name, at, _ in s.states})
            out.append(replace(s, body=body_of(s.body, shapes, always)))
            shapes.update(dict(s.rows))
        elif isinstance(s, For):
            out.append(replace(s, body=body_of(s.body, shapes, always)))
        else:
            if isinstance(s, Let):
                shapes[s.name] = s.shape
            if isinstance(s, Apply):
                for n in s.names:
                    shapes[n] = None  # of a call: nothing is known, so ranges are shown
            out.append(s)
    return tuple(out)


def inner(e, shapes, always):
    def change(n):
        if not isinstance(n, Reduce):
            return n
        body = (n.body,) + ((n.where,) if n.where is not None else ())
        return replace(n, binders=tuple(replace(b, shown=not same(body, b.name, b.extent, shapes) or always()) for b in n.binders))
    return rebuild(e, change)


def same(e, name, extent, shapes):
    """Does a plain read of the index outside of branches give exactly this range, and no read another one?"""
    strong, differs = [], []

    def visit(n, weak):
        if isinstance(n, tuple):
            for x in n:
                visit(x, weak)
            return
        if isinstance(n, Reduce) and any(b.name == name for b in n.binders):
            return
        if isinstance(n, Read):
            shape = shapes.get(n.tensor)
            for k, x in enumerate(n.index):
                if isinstance(x, Name) and x.name == name:
                    if shape is None or shape[k] != extent:
                        differs.append(n)
                    elif not weak:
                        strong.append(n)
        if isinstance(n, If):
            visit(n.cond, weak)
            visit(n.a, True)
            visit(n.b, True)
            return
        if hasattr(n, "__dataclass_fields__"):
            for x in children(n):
                visit(x, weak)
    visit(e, False)
    return bool(strong) and not differs
