"""The typed tree of a model: expressions, equations, functions, inputs. Every index carries its range, so that no oracle infers one.

A node is a tuple-like dataclass; `walk` visits, `rebuild` maps a function over the nodes from the leaves up.
"""
from dataclasses import dataclass, field, fields, replace


class Expr:
    def __add__(self, other): return Bin("+", self, lift(other))
    def __sub__(self, other): return Bin("-", self, lift(other))
    def __mul__(self, other): return Bin("*", self, lift(other))
    def __truediv__(self, other): return Bin("/", self, lift(other))
    def __floordiv__(self, other): return Bin("//", self, lift(other))
    def __mod__(self, other): return Bin("%", self, lift(other))
    def __pow__(self, other): return Bin("^", self, lift(other))
    def __le__(self, other): return Bin("<=", self, lift(other))
    def __lt__(self, other): return Bin("<", self, lift(other))
    def __ge__(self, other): return Bin(">=", self, lift(other))
    def __gt__(self, other): return Bin(">", self, lift(other))
    def eq(self, other): return Bin("==", self, lift(other))
    def __and__(self, other): return Bin("and", self, lift(other))
    def __or__(self, other): return Bin("or", self, lift(other))
    def __neg__(self): return Un("-", self)


@dataclass(frozen=True)
class Num(Expr):
    value: object  # int, float or bool


@dataclass(frozen=True)
class Name(Expr):
    """An index, a dim, a loop variable or a scalar."""
    name: str


@dataclass(frozen=True)
class Read(Expr):
    tensor: str
    index: tuple  # of Expr


@dataclass(frozen=True)
class Bin(Expr):
    op: str
    a: Expr
    b: Expr


@dataclass(frozen=True)
class Un(Expr):
    op: str  # - not
    a: Expr


@dataclass(frozen=True)
class Call(Expr):
    """A built-in function, a conversion, or a function of the file over numbers."""
    f: str
    args: tuple


@dataclass(frozen=True)
class If(Expr):
    cond: Expr
    a: Expr
    b: Expr


@dataclass(frozen=True)
class Index:
    """An index with its range; `shown` if the text says it (`n:N`)."""
    name: str
    extent: Expr
    shown: bool = False


@dataclass(frozen=True)
class Reduce(Expr):
    op: str
    binders: tuple  # of Index
    body: Expr
    where: Expr = None


@dataclass(frozen=True)
class Softmax(Expr):
    names: tuple  # of str, indices of the equation
    body: Expr
    where: Expr = None
    sink: Expr = None
    log: bool = False
    map: str = "softmax"  # or a normaliser with a threshold


@dataclass(frozen=True)
class Concat(Expr):
    """The whole right side of an equation: parts along one index, each with its own range."""
    name: str
    parts: tuple  # of (extent, Expr)


@dataclass(frozen=True)
class Merged:
    """A left index `outer*E + inner`."""
    outer: Index
    inner: Index


@dataclass(frozen=True)
class Equation:
    name: str
    left: tuple  # of Index, Merged; or Expr for a static position of a collection
    right: Expr


@dataclass(frozen=True)
class Let:
    name: str
    shape: tuple


@dataclass(frozen=True)
class Dim:
    name: str
    value: Expr


@dataclass(frozen=True)
class For:
    var: str
    lo: Expr
    hi: Expr
    body: tuple


@dataclass(frozen=True)
class Scan:
    """A recurrence. `states`: (name, indices, start: a number or the name of a tensor). In the body a left side with the step, an Expr, leaves a
    row; `rows`: (name, shape) of what all steps leave."""
    var: str
    lo: Expr
    hi: Expr
    states: tuple
    body: tuple
    rows: tuple


@dataclass(frozen=True)
class Apply:
    """`names = f(args; static)`, f a function over tensors."""
    names: tuple
    f: str
    args: tuple  # names of tensors
    static: tuple = ()  # of (name, Expr)


@dataclass(frozen=True)
class Scalar:
    """fn f(args) = body."""
    name: str
    args: tuple
    body: Expr


@dataclass(frozen=True)
class Function:
    """fn f(x: shape, ..; static) { body return results }."""
    name: str
    args: tuple  # of (name, shape)
    static: tuple
    body: tuple
    results: tuple


@dataclass(frozen=True)
class Input:
    """`recipe` says how `inputs.py` draws it: a kind and its numbers. `param`: read from a file of weights; so many of its first axes are
    loop variables, of which each turn has a tensor of its own. `held`: the 16-bit type that all parameters of the model have in memory."""
    name: str
    type: str
    shape: tuple  # of Expr
    recipe: tuple = ("real",)
    param: int = None
    held: str = None


@dataclass(frozen=True)
class Model:
    inputs: tuple
    body: tuple
    results: tuple  # names
    functions: tuple = ()
    constants: tuple = ()  # of (name, value or table)
    static: tuple = ()     # dims that have a number in the text: (name, size)
    features: frozenset = field(default=frozenset(), compare=False)


def lift(value):
    return value if isinstance(value, Expr) else Name(value) if isinstance(value, str) else Num(value)


def children(node):
    """The nodes directly below, with tuples of nodes opened."""
    if isinstance(node, (tuple, list)):
        return [n for n in node if hasattr(n, "__dataclass_fields__") or isinstance(n, tuple)]
    return [v for f in fields(node) if hasattr(v := getattr(node, f.name), "__dataclass_fields__") or isinstance(v, tuple)]


def walk(node):
    """Every node below and including this one, from the root down."""
    if not isinstance(node, tuple):
        yield node
    for child in children(node):
        yield from walk(child)


def rebuild(node, change):
    """The tree with each node replaced by change(node), leaves first."""
    if isinstance(node, tuple):
        return tuple(rebuild(n, change) for n in node)
    if not hasattr(node, "__dataclass_fields__"):
        return node
    new = {f.name: rebuild(v, change) for f in fields(node)
           if hasattr(v := getattr(node, f.name), "__dataclass_fields__") or isinstance(v, tuple)}
    return change(replace(node, **new) if new else node)


def substitute(node, names):
    """The tree with names replaced by expressions."""
    return rebuild(node, lambda n: names.get(n.name, n) if isinstance(n, Name) else n)


def reads(node):
    """The names of tensors that are read below."""
    found = {n.tensor for n in walk(node) if isinstance(n, Read)}
    return found | {a for n in walk(node) if isinstance(n, Apply) for a in n.args}
