"""A model's tree as a Python function over NumPy arrays in float64: the oracle that shares nothing with the compiler.

The text reads like the model: an index is an argument of a lambda, `and` and a branch are lambdas because they guard their reads.
"""
from tree import *

OPERATORS = {"+": "+", "-": "-", "*": "*", "//": "//", "%": "%", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def safe(name):
    """A name that Python and the oracle leave free."""
    return name + "_" if name in ("lambda", "is", "def", "class", "del", "val", "index", "call", "cast", "live", "real", "place", "mul", "store", "join", "tensor", "reduce", "choose", "constant", "table", "pick", "power", "softmax", "both", "also", "dense", "over") else name


def tensor(name):
    """Tensors and indices live apart: a tensor's name ends in an underscore."""
    return name + "_"


def expr(e):
    if isinstance(e, Num):
        return {float("inf"): "np.inf", float("-inf"): "-np.inf"}.get(e.value, repr(e.value)) if not isinstance(e.value, bool) else f"np.bool_({e.value})"
    if isinstance(e, Name):
        return safe(e.name)
    if isinstance(e, Read):
        return f"{tensor(e.tensor)}[{', '.join(expr(x) for x in e.index) or '()'}]"
    if isinstance(e, Un):
        return f"negate({expr(e.a)})" if e.op == "not" else f"(-{expr(e.a)})"
    if isinstance(e, Bin):
        a, b = expr(e.a), expr(e.b)
        if e.op == "/":
            return f"over({a}, {b})"
        if e.op in OPERATORS:
            return f"({a} {OPERATORS[e.op]} {b})"
        if e.op == "^":
            whole = isinstance(e.b, Num) and isinstance(e.b.value, int) and e.b.value >= 0
            return f"power({a}, {b}, {whole})"
        if e.op in ("and", "or"):
            return f"{'also' if e.op == 'and' else 'either'}({a}, lambda: {b})"
        return f"equal({a}, {b})" if e.op == "==" else f"negate(equal({a}, {b}))"
    if isinstance(e, Call):
        args = ", ".join(expr(a) for a in e.args)
        if e.f in ("f32", "f16", "bf16", "i8", "i32", "i64", "bool"):
            return f"cast({e.f!r}, {args})"
        return f"{e.f}({args})" if e.f.startswith("fn_") else f"call({e.f!r}, {args})"
    if isinstance(e, If):
        return f"choose({expr(e.cond)}, lambda: {expr(e.a)}, lambda: {expr(e.b)})"
    if isinstance(e, Reduce):
        names = ", ".join(safe(b.name) for b in e.binders)
        extents = "".join(expr(b.extent) + ", " for b in e.binders)
        where = f", lambda {names}: {expr(e.where)}" if e.where is not None else ""
        return f"reduce({e.op!r}, ({extents}), lambda {names}: {expr(e.body)}{where})"
    if isinstance(e, Softmax):
        names = "".join(safe(n) + ", " for n in e.names)
        rest = "".join(f", {key}=lambda: {expr(x)}" for key, x in (("where", e.where), ("sink", e.sink)) if x is not None)
        return f"softmax(({names}), lambda: {expr(e.body)}{rest}{', log=True' if e.log else ''}{f', map={e.map!r}' if e.map != 'softmax' else ''})"
    raise TypeError(e)


def over(left, body):
    """tensor(extents, lambda ..: body) for the indices of a left side."""
    axes, groups = [], []
    for x in left:
        own = [x.outer, x.inner] if isinstance(x, Merged) else [x]
        groups.append(list(range(len(axes), len(axes) + len(own))))
        axes += own
    extents = "".join(expr(x.extent) + ", " for x in axes)
    merged = f", {groups}" if any(len(g) > 1 for g in groups) else ""
    return f"tensor(({extents}), lambda {', '.join(safe(x.name) for x in axes)}: {body}{merged})"


def equation(s, pad):
    at = [x for x in s.left if isinstance(x, Expr)]
    left = [x for x in s.left if not isinstance(x, Expr)]
    if isinstance(s.right, Concat):
        where = [x.name for x in left].index(s.right.name)
        parts = [over(tuple(replace(x, extent=n) if x.name == s.right.name else x for x in left), expr(part)) for n, part in s.right.parts]
        value = f"join({', '.join(parts)}, at={where})"
    else:
        value = over(left, expr(s.right))
    if at:
        places = "".join((expr(x) if isinstance(x, Expr) else "None") + ", " for x in s.left)
        return f"{pad}store({tensor(s.name)}, ({places}), {value})"
    return f"{pad}{tensor(s.name)} = {value}"


def lines(body, indent):
    pad = "    " * indent
    for s in body:
        if isinstance(s, Equation):
            yield equation(s, pad)
        elif isinstance(s, Let):
            yield f"{pad}{tensor(s.name)} = collection(({''.join(expr(x) + ', ' for x in s.shape)}))"
        elif isinstance(s, Dim):
            yield f"{pad}{safe(s.name)} = {expr(s.value)}"
        elif isinstance(s, Apply):
            args = [tensor(a) for a in s.args] + [f"{safe(name)}={expr(value)}" for name, value in s.static]
            yield f"{pad}{', '.join(map(tensor, s.names))} = {s.f}({', '.join(args)})"
        elif isinstance(s, Scan):
            for name, at, start in s.states:
                value = tensor(start) if isinstance(start, str) else over(at, expr(start))
                yield f"{pad}{tensor(name)} = {value}"
            for name, shape in s.rows:
                yield f"{pad}{tensor(name)} = collection(({''.join(expr(x) + ', ' for x in shape)}))"
            yield f"{pad}for {safe(s.var)} in range({expr(s.lo)}, {expr(s.hi)}):"
            yield from lines(s.body, indent + 1)
        elif isinstance(s, For):
            yield f"{pad}for {safe(s.var)} in range({expr(s.lo)}, {expr(s.hi)}):"
            yield from lines(s.body, indent + 1)
        else:
            raise TypeError(s)


def function(f):
    if isinstance(f, Scalar):
        return f"def {f.name}({', '.join(map(safe, f.args))}):\n    return {expr(f.body)}"
    # Dims of a function are those of its arguments.
    known, head = set(f.static), []
    for name, shape in f.args:
        for axis, n in enumerate(shape):
            if isinstance(n, Name) and n.name not in known:
                known.add(n.name)
                head.append(f"    {safe(n.name)} = {tensor(name)}.v.shape[{axis}]")
    args = ", ".join([tensor(name) for name, _ in f.args] + list(map(safe, f.static)))
    return "\n".join([f"def {f.name}({args}):", *head, *lines(f.body, 1), f"    return {', '.join(map(tensor, f.results))}"])


def numpy_text(model):
    """`def model(dims.., inputs..)`: dims by name, inputs as Tensors; returns the results as Tensors."""
    parts = [f"{tensor(name)} = constant({value!r})" for name, value in model.constants]
    parts += [function(f) for f in model.functions]
    body = "\n".join(lines(model.body, 1)) or "    pass"
    args = ", ".join(tensor(x.name) for x in model.inputs)
    return "\n".join(parts + [f"def model({args}, **dims):", "    globals().update(dims)", body,
                              f"    return ({''.join(tensor(r) + ', ' for r in model.results)})"]) + "\n"
