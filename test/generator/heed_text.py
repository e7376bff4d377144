"""A model's tree as Heed text."""
from tree import *

LEVEL = {"or": 1, "and": 2, "not": 3, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6,
         "//": 6, "%": 6, "^": 9}


def number(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if value == float("inf"):
        return "inf"
    text = repr(float(value))
    return text if "." in text or "e" in text else text + ".0"


def expr(e, level=0):
    """Text of an expression, in parentheses if it binds looser than `level`."""
    text, own = spell(e)
    return f"({text})" if own < level else text


def spell(e):
    if isinstance(e, Num):
        return ("-inf", 7) if e.value == float("-inf") else (number(e.value), 10 if e.value >= 0 else 7)
    if isinstance(e, Name):
        return e.name, 10
    if isinstance(e, Read):
        return e.tensor + ("[" + ", ".join(expr(x) for x in e.index) + "]" if e.index else ""), 10
    if isinstance(e, Call):
        return f"{e.f}({', '.join(expr(a) for a in e.args)})", 10
    if isinstance(e, Un):
        return ("not " + expr(e.a, 3), 3) if e.op == "not" else ("-" + expr(e.a, 7), 7)
    if isinstance(e, If):
        return f"if {expr(e.cond)} then {expr(e.a)} else {expr(e.b)}", 0
    if isinstance(e, Bin):
        own = LEVEL[e.op]
        if e.op == "^":
            return f"{expr(e.a, 10)}^{expr(e.b, 9)}", own
        # A reduction as a left factor would swallow what follows; comparisons do not chain.
        left = expr(e.a, 11 if own == 6 and isinstance(e.a, Reduce) else own + (own == 4))
        return f"{left} {e.op} {expr(e.b, own + 1)}", own
    if isinstance(e, Reduce):
        names = ", ".join(bound(b) for b in e.binders)
        where = f" where {expr(e.where)}" if e.where is not None else ""
        body = expr(e.body, 6)
        if e.op in ("any", "all") or body.startswith("-"):
            body = f"({expr(e.body)})"
        return f"{e.op}({names}{where}) {body}", 6
    if isinstance(e, Softmax):
        where = f" where {expr(e.where)}" if e.where is not None else ""
        sink = f"; sink = {expr(e.sink)}" if e.sink is not None else ""
        body = expr(e.body, 10)
        if body.startswith("-"):
            body = f"({body})"
        return f"{'log_' if e.log else ''}{e.map}({', '.join(e.names)}{where}{sink}) {body}", 5.5
    if isinstance(e, Concat):
        return f"concat({e.name})({', '.join(expr(part) for _, part in e.parts)})", 0
    raise TypeError(e)


def bound(index):
    return index.name + (f":{expr(index.extent, 5)}" if index.shown else "")


def left(index):
    if isinstance(index, Merged):
        return f"{bound(index.outer)}*{expr(index.inner.extent, 7)} + {bound(index.inner)}"
    return bound(index) if isinstance(index, Index) else expr(index)


def equation(s):
    return s.name + (f"[{', '.join(left(x) for x in s.left)}]" if s.left else "") + f" = {expr(s.right)}"


def lines(body, indent):
    pad = "  " * indent
    for s in body:
        if isinstance(s, str):
            yield pad + s
        elif isinstance(s, Equation):
            yield pad + equation(s)
        elif isinstance(s, Let):
            yield f"{pad}let {s.name}: f32[{', '.join(expr(x) for x in s.shape)}]"
        elif isinstance(s, Dim):
            yield f"{pad}dim {s.name} = {expr(s.value)}"
        elif isinstance(s, Apply):
            args = list(s.args) + [f"{name} = {expr(value)}" for name, value in s.static]
            yield f"{pad}{', '.join(s.names)} = {s.f}({', '.join(args)})"
        elif isinstance(s, Scan):
            states = "".join(f", {name}: f32[{', '.join(expr(x.extent) for x in at)}] = {start if isinstance(start, str) else expr(start)}"
                             for name, at, start in s.states)
            yield f"{pad}scan {s.var} in {expr(s.lo, 5)}..{expr(s.hi, 5)}{states} {{"
            yield from lines(s.body, indent + 1)
            yield pad + "}"
        elif isinstance(s, For):
            yield f"{pad}for {s.var} in {expr(s.lo, 5)}..{expr(s.hi, 5)} {{"
            yield from lines(s.body, indent + 1)
            yield pad + "}"
        else:
            raise TypeError(s)


def table(value):
    return "[" + ", ".join(map(table, value)) + "]" if isinstance(value, (list, tuple)) else number(value)


def function(f):
    if isinstance(f, Scalar):
        return f"fn {f.name}({', '.join(f.args)}) = {expr(f.body)}"
    args = ", ".join(f"{name}: [{', '.join(expr(x) for x in shape)}]" for name, shape in f.args)
    static = "; " + ", ".join(f.static) if f.static else ""
    body = "\n".join(lines(f.body, 1))
    return f"fn {f.name}({args}{static}) {{\n{body}\n  return {', '.join(f.results)}\n}}"


def typed(x, first=0):
    shape = x.shape[first:]
    return f"{x.name}: {x.type}" + (f"[{', '.join(expr(n) for n in shape)}]" if shape else "")


def of_turns(body, params, around=()):
    """The body with parameters that each turn of a loop has of its own: declared in the loop, and read without its variables."""
    new = []
    for s in body:
        if isinstance(s, For):
            loops = around + (s.var,)
            own = [x for x in params.values() if x.param == len(loops) and x.name in reads(s)]
            read = {n.tensor: n for n in walk(s.body) if isinstance(n, Read)}
            names = ["".join(f".{{{expr(at)}}}" for at in read[x.name].index[:x.param]) for x in own]
            s = replace(s, body=tuple(f'param {typed(x, x.param)} @ "{x.name}{n}"' for x, n in zip(own, names)) + of_turns(s.body, params, loops))
        elif around:
            s = rebuild(s, lambda n: replace(n, index=n.index[params[n.tensor].param or 0:]) if isinstance(n, Read) and n.tensor in params else n)
        new.append(s)
    return tuple(new)


def heed_text(model, name="drawn"):
    """The whole file. Dims of `static` stand as their numbers."""
    model = substitute(model, {name: Num(size) for name, size in model.static})
    parts = [f"const {name} = {table(value)}" for name, value in model.constants]
    parts += [function(f) for f in model.functions]
    params = {x.name: x for x in model.inputs if x.param is not None}
    inputs = ", ".join(typed(x) for x in model.inputs if x.name not in params)
    head = [f"  param {typed(x)} @ \"{x.name}\"" for x in params.values() if not x.param]
    body = "\n".join(head + list(lines(of_turns(model.body, params), 1)))
    return "\n".join(parts + [f"model {name}({inputs}) {{\n{body}\n  return {', '.join(model.results)}\n}}\n"])
