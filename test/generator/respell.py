"""An equal model in other words: order of factors, intermediates named or inlined, layouts, conditions, functions, indices renamed.

Every step keeps the meaning in exact arithmetic; `respelled` draws some of them.
"""
from tree import *

PLAIN = (Num, Name)


def unique(model):
    """Each tensor of the body is defined once (loops, collections and functions are left alone)."""
    now, taken, body = {}, {x.name for x in model.inputs}, []
    for s in model.body:
        s = rebuild(s, lambda n: replace(n, tensor=now.get(n.tensor, n.tensor)) if isinstance(n, Read) else n)
        if isinstance(s, Equation) and not any(isinstance(x, Expr) for x in s.left):
            name = s.name
            while name in taken:
                name += "_"
            taken.add(name)
            now[s.name] = name
            s = replace(s, name=name)
        elif isinstance(s, Apply):
            s = replace(s, args=tuple(now.get(a, a) for a in s.args))
        elif isinstance(s, (For, Scan)):
            return None
        body.append(s)
    return replace(model, body=tuple(body), results=tuple(now.get(r, r) for r in model.results))


def respelled(model, rng, steps=None):
    """The model after some random steps, None if it has what no step understands."""
    model = unique(model)
    if model is None:
        return None
    if not model.body:
        return None
    for _ in range(steps or rng.randrange(2, 9)):
        model = rng.choice(STEPS)(model, rng) or model
    return model


def everywhere(change, p=0.5):
    """A step that changes each node with probability p."""
    def step(model, rng):
        return replace(model, body=rebuild(model.body, lambda n: change(n, rng) if isinstance(n, Expr) and rng.random() < p else n))
    return step


def commute(n, rng):
    if isinstance(n, Bin) and n.op in ("*", "+"):
        return Bin(n.op, n.b, n.a)
    if isinstance(n, Bin) and n.op in ("and", "or") and safe(n.a) and safe(n.b):
        return Bin(n.op, n.b, n.a)
    if isinstance(n, Bin) and n.op in TURNED:
        return Bin(TURNED[n.op], n.b, n.a)
    return n


TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!="}


def safe(n):
    """Reads at plain indices only: no guard protects them."""
    return all(isinstance(i, PLAIN) for r in walk(n) if isinstance(r, Read) for i in r.index)


def associate(n, rng):
    if isinstance(n, Bin) and n.op == "*":
        if isinstance(n.a, Bin) and n.a.op == "*":
            return Bin("*", n.a.a, Bin("*", n.a.b, n.b))
        if isinstance(n.b, Bin) and n.b.op == "*":
            return Bin("*", Bin("*", n.a, n.b.a), n.b.b)
        if isinstance(n.a, Bin) and n.a.op == "/":
            return Bin("/", Bin("*", n.a.a, n.b), n.a.b)
    if isinstance(n, Bin) and n.op == "/" and isinstance(n.a, Bin) and n.a.op == "*" and rng.random() < 0.5:
        return Bin("*", Bin("/", n.a.a, n.b), n.a.b)
    return n


def logic(n, rng):
    if isinstance(n, Bin) and n.op in ("and", "or") and rng.random() < 0.5:
        return Un("not", Bin("or" if n.op == "and" else "and", Un("not", n.a), Un("not", n.b)))
    if isinstance(n, Un) and n.op == "not":
        if isinstance(n.a, Un) and n.a.op == "not":
            return n.a.a
        if isinstance(n.a, Bin) and n.a.op in OPPOSITE and not any(isinstance(r, Read) for r in walk(n.a)):
            return Bin(OPPOSITE[n.a.op], n.a.a, n.a.b)  # of indices: no NaN
    return n


def arithmetic(n, rng):
    if isinstance(n, Bin) and n.op == "^" and isinstance(n.b, Num) and n.b.value in (2, 3) and real(n.a):
        return n.a * n.a if n.b.value == 2 else n.a * n.a * n.a
    if isinstance(n, Bin) and n.op == "*" and n.a == n.b and real(n.a):
        return n.a ** 2
    if isinstance(n, Call) and n.f == "relu" and real(n):
        return Call("max", (n.args[0], Num(0.0)))
    if isinstance(n, Bin) and n.op == "-" and real(n.b):
        return n.a + -n.b
    if isinstance(n, Un) and n.op == "-" and real(n.a):
        return Num(-1.0) * n.a
    if isinstance(n, Call) and n.f == "sqrt" and real(n) and rng.random() < 0.3:
        return n.args[0] ** 0.5
    if isinstance(n, Call) and n.f == "rsqrt" and real(n):
        return Num(1.0) / Call("sqrt", n.args)
    return n


def real(n):
    """Has it tensors of reals? Then rounding may move a little; tables are evaluated once, exactly."""
    return any(isinstance(r, Read) for r in walk(n)) and not any(isinstance(r, Read) and r.tensor[:2] in ("se", "le", "lo", "hi", "qs", "ke", "al", "gl", "qa", "qb") for r in walk(n))


def sums(n, rng):
    """Distribution over a sum, and factors in and out of one."""
    if isinstance(n, Reduce) and n.op == "sum" and isinstance(n.body, Bin):
        own = {b.name for b in n.binders}
        b = n.body
        if b.op in ("+", "-") and rng.random() < 0.5:
            return Bin(b.op, replace(n, body=b.a), replace(n, body=b.b))
        if b.op == "*":
            for x, y in ((b.a, b.b), (b.b, b.a)):
                if isinstance(y, Bin) and y.op == "+" and rng.random() < 0.5:
                    return replace(n, body=x * y.a) + replace(n, body=x * y.b)
                if not free(x) & own and n.where is None and not (free(y) & own) == set():
                    return x * replace(n, body=y)
    if isinstance(n, Bin) and n.op == "*" and isinstance(n.b, Reduce) and n.b.op == "sum" and n.b.where is None:
        if not free(n.a) & {b.name for b in n.b.binders}:
            return replace(n.b, body=n.a * n.b.body)
    return n


def free(n):
    """Names that stand below, without those that a binder below binds."""
    if isinstance(n, tuple):
        return set().union(*map(free, n)) if n else set()
    if isinstance(n, Name):
        return {n.name}
    below = set().union(*[free(c) for c in children(n)]) if hasattr(n, "__dataclass_fields__") else set()
    return below - {b.name for b in n.binders} if isinstance(n, Reduce) else below


def named(model, rng):
    """A part of an equation becomes an equation. Not from a branch, whose condition may guard it."""
    where = [k for k, s in enumerate(model.body) if isinstance(s, Equation) and not any(isinstance(x, Expr) for x in s.left) and not isinstance(s.right, Concat)]
    if not where:
        return None
    k = rng.choice(where)
    s = model.body[k]
    ranges = {y.name: y.extent for x in s.left for y in ([x.outer, x.inner] if isinstance(x, Merged) else [x])}
    found = []

    def visit(n, inner):
        if isinstance(n, tuple):
            for c in n:
                visit(c, inner)
            return
        if isinstance(n, (If, Softmax)):
            return
        if isinstance(n, (Reduce, Call)) or isinstance(n, Bin) and n.op in "+-*/":
            if n is not s.right and real(n) and safe_names(n, inner) and (inner == ranges or safe(n)):
                found.append((n, dict(inner)))
        if isinstance(n, Reduce):
            inner = {**inner, **{b.name: b.extent for b in n.binders}}
            visit(n.body, inner)
            return
        for c in children(n) if hasattr(n, "__dataclass_fields__") else ():
            visit(c, inner)

    def safe_names(n, inner):
        return all(x in inner or x in DIMS(model) for x in free(n)) and not any(isinstance(x, Call) and x.f in ("i32", "i64") for x in walk(n))
    visit(s.right, ranges)
    if not found:
        return None
    part, inner = rng.choice(found)
    if len(set(free(part)) & set(inner)) > 6:
        return None
    keys = sorted(free(part) & set(inner))
    rng.shuffle(keys)
    taken = {x.name for x in model.inputs} | {x.name for x in model.body if hasattr(x, "name")}
    name = next(f"part{n}" for n in range(99) if f"part{n}" not in taken)
    new = Equation(name, tuple(Index(x, inner[x]) for x in keys), part)
    right = rebuild(s.right, lambda n: Read(name, tuple(map(Name, keys))) if n == part else n)
    return replace(model, body=model.body[:k] + (new, replace(s, right=right)) + model.body[k + 1:])


def DIMS(model):
    return {n.name for x in model.inputs for n in walk(x.shape) if isinstance(n, Name)} | {name for name, _ in model.static}


def inlined(model, rng):
    """An equation that is read once stands where it is read."""
    for k in rng.sample(range(len(model.body)), len(model.body)):
        s = model.body[k]
        if not isinstance(s, Equation) or s.name in model.results or not all(isinstance(x, Index) for x in s.left):
            continue
        if isinstance(s.right, (Concat, Softmax)) or any(isinstance(n, (Softmax, If)) for n in walk(s.right)) or not any(isinstance(n, Read) for n in walk(s.right)):
            continue
        rest = model.body[k + 1:]
        uses = [n for n in walk(rest) if isinstance(n, Read) and n.tensor == s.name]
        if len(uses) != 1 or any(isinstance(n, Apply) and s.name in n.args for n in walk(rest)):
            continue
        use = uses[0]
        binders = {b.name for n in walk(s.right) if isinstance(n, Reduce) for b in n.binders}
        around = {b.name for n in walk(rest) if isinstance(n, (Reduce, Equation)) for b in (n.binders if isinstance(n, Reduce) else [])}
        if binders & ({x.name for x in s.left} | around | free(use.index)) or binders & {y.name for t in rest if isinstance(t, Equation) for x in t.left for y in ([x.outer, x.inner] if isinstance(x, Merged) else [x]) if isinstance(y, Index)}:
            continue
        # A sum under a sum that its guards do not allow to move stays apart.
        body = substitute(s.right, {x.name: i for x, i in zip(s.left, use.index)})
        rest = rebuild(rest, lambda n: body if n == use else n)
        return replace(model, body=model.body[:k] + rest)
    return None


def relaid(model, rng):
    """The axes of an intermediate in another order."""
    for k in rng.sample(range(len(model.body)), len(model.body)):
        s = model.body[k]
        if isinstance(s, Equation) and s.name not in model.results and len(s.left) > 1 and all(isinstance(x, Index) for x in s.left):
            if any(isinstance(n, Apply) and s.name in n.args for n in model.body):
                continue
            order = rng.sample(range(len(s.left)), len(s.left))
            rest = rebuild(model.body[k + 1:], lambda n: replace(n, index=tuple(n.index[x] for x in order)) if isinstance(n, Read) and n.tensor == s.name else n)
            return replace(model, body=model.body[:k] + (replace(s, left=tuple(s.left[x] for x in order)),) + rest)
    return None


def renamed(model, rng):
    """Other names for the indices of an equation."""
    k = rng.randrange(len(model.body))
    s = model.body[k]
    if not isinstance(s, Equation) or isinstance(s.right, Concat):
        return None
    own = {y.name for x in s.left for y in ([x.outer, x.inner] if isinstance(x, Merged) else [x]) if isinstance(y, Index)}
    own |= {b.name for n in walk(s.right) if isinstance(n, Reduce) for b in n.binders}
    names = {x: x + rng.choice("0127") for x in own}
    if set(names.values()) & DIMS(model):
        return None

    def change(n):
        if isinstance(n, (Name, Index)) and n.name in names:
            return replace(n, name=names[n.name])
        if isinstance(n, Softmax):
            return replace(n, names=tuple(names.get(x, x) for x in n.names))
        return n
    new = rebuild(s, change)
    return replace(model, body=model.body[:k] + (replace(new, name=s.name),) + model.body[k + 1:])


def as_function(model, rng):
    """A part over one read becomes a function of the file."""
    parts = [n for n in walk(model.body) if isinstance(n, Call) and n.f not in ("f32", "f16", "bf16", "i32") and not n.f.startswith("fn_")
             and len([r for r in walk(n) if isinstance(r, Read)]) == 1 and isinstance(n.args[0], Read)
             and not any(isinstance(x, Name) for a in n.args[1:] for x in walk(a))]
    if not parts:
        return None
    part = rng.choice(parts)
    name = f"fn_{part.f}{len(model.functions)}"
    f = Scalar(name, ("x",), replace(part, args=(Name("x"),) + part.args[1:]))
    return replace(model, functions=model.functions + (f,), body=rebuild(model.body, lambda n: Call(name, part.args[:1]) if n == part else n))


STEPS = [everywhere(commute), everywhere(associate), everywhere(logic), everywhere(arithmetic), everywhere(sums, 0.4), named, named, inlined, inlined,
         relaid, renamed, as_function]
