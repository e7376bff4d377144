"""What the NumPy printer's text runs on: values with named axes in float64, each with a bound of its error.

Beside a value `v` stands a magnitude `a`: an f32 program that may reassociate has an error of at most a small multiple of
2^-24 * a there. It follows what the element depends on: of a sum the sum of magnitudes, of f(x) |f(x)| + |f'(x)| a.
`absent` marks what the `where` of a softmax, or a score of -inf, excludes: sums leave it out (LANGUAGE.md, "Guards").
Of infinite numbers see `infinite`.
"""
import math

import numpy as np

from infinite import LEAST, carried, is_made, is_open, open_where, opened, plain, product_magnitude, unbounded, unbounded_where

STACK = []  # conditions that guard what is evaluated at present
LIMIT = 1 << 24
FACTOR = 24  # an element may be wrong by FACTOR * 2^-24 * a
UNIT = {"f32": 1.0, "f16": 2.0 ** 14 / FACTOR, "bf16": 2.0 ** 17 / FACTOR}  # one unit in the last place


class Tie(Exception):
    """A comparison, rounding or argmax of reals that an f32 program may decide otherwise: other inputs are drawn."""


class Wrong(Exception):
    """The drawn model reads out of range: a fault of the generator."""


class Large(Exception):
    """More elements than the oracle should hold."""


class Axis:
    def __init__(self, n):
        self.n = int(n)


class Val:
    """`v` has one axis per Axis of `ax`. a is None for integers and bools. `factors`: a product that is not multiplied out."""

    def __init__(self, v, ax=(), a=None, absent=None, factors=None, exact=False, static=False, deep=False, empty=False):
        array = lambda w: w if w is None else np.asarray(w)
        self.exact = exact  # an f32 program has this very number
        self.deep = deep    # a sum, or made from one: as a factor it may be multiplied out
        self.empty = empty  # a sum over nothing: what multiplies it may be left out
        self.static = static  # of indices and dims alone: evaluated in f64, so nothing is lost on the way
        self._v, self.ax, self._a, self.absent, self.factors = array(v), tuple(ax), array(a), absent, factors

    def out(self):
        if self._v is None:
            self._v, self._a = self.multiplied()
        return self

    def multiplied(self, axes=()):
        """The arrays of a product over which a sum runs along `axes`."""
        vs, ax = spread([Val(f.v, f.ax) for f in self.factors])
        as_ = magnitudes(self.factors)
        v, a = vs[0], as_[0]
        for y, q in zip(vs[1:], as_[1:]):
            v, a = mul(v, y), mul(a, q)
        if not all(map(plain, self.factors)):
            a = product_magnitude(v, a, vs, as_)
            v, a = unbounded_where(unbounded(self.factors, vs, as_, ax, axes), v, a)
            v, a = open_where(opened(self.factors, vs, as_, ax, axes), v, a)
        order = [ax.index(x) for x in self.ax]
        return v.transpose(order), a.transpose(order)

    @property
    def v(self): return self.out()._v

    @property
    def a(self): return self.out()._a

    @property
    def real(self):
        return self.factors is not None or self._v.dtype.kind == "f"

    def __add__(self, other): return linear(np.add, self, other)
    def __radd__(self, other): return linear(np.add, other, self)
    def __sub__(self, other): return linear(np.subtract, self, other)
    def __rsub__(self, other): return linear(np.subtract, other, self)
    def __mul__(self, other): return times(self, other)
    def __rmul__(self, other): return times(other, self)
    def __truediv__(self, other): return quotient(self, other)
    def __rtruediv__(self, other): return quotient(other, self)
    def __floordiv__(self, other): return whole(np.floor_divide, self, other)
    def __rfloordiv__(self, other): return whole(np.floor_divide, other, self)
    def __mod__(self, other): return whole(np.mod, self, other)
    def __neg__(self): return -1 * self
    def __lt__(self, other): return compare(np.less, self, other)
    def __le__(self, other): return compare(np.less_equal, self, other)
    def __gt__(self, other): return compare(np.greater, self, other)
    def __ge__(self, other): return compare(np.greater_equal, self, other)


def mul(x, y):
    with np.errstate(invalid="ignore", over="ignore"):
        return x * y


def val(x):
    if isinstance(x, Val):
        return x
    v = np.asarray(x)
    return Val(v.astype(np.int64) if v.dtype.kind in "iu" else v, (), np.abs(v) if v.dtype.kind == "f" else None, exact=True, static=True)


def table(op):
    """The operation, exact where all its operands are tables."""
    def with_tables(*args):
        r = op(*args)
        if all(val(x).static for x in args if not callable(x) and not isinstance(x, (str, bool))):
            a = np.abs(r.v) if r.real else None
            return Val(r.v, r.ax, a, r.absent, exact=True, static=True)
        r.deep = r.deep or any(val(x).deep for x in args if not callable(x) and not isinstance(x, (str, bool)))
        return r
    return with_tables


def spread(vals):
    """Arrays of one rank that broadcast against each other, and their axes."""
    ax = []
    for x in vals:
        ax += [k for k in x.ax if k not in ax]
    out = []
    for x in vals:
        order = sorted(range(len(x.ax)), key=lambda k: ax.index(x.ax[k]))
        v = x.v.transpose(order)
        have = iter(v.shape)
        mine = {id(k) for k in x.ax}
        out.append(v.reshape([next(have) if id(k) in mine else 1 for k in ax]))
    if math.prod(k.n for k in ax) > LIMIT:
        raise Large
    return out, tuple(ax)


def both(f, *vals):
    """f of marks (bool Vals or None)."""
    arrays, ax = spread(vals)
    return Val(f(*arrays), ax)


def reals(*vals):
    """Integers that meet a real become real."""
    vals = [val(x) for x in vals]
    return [real(x) for x in vals] if any(x.real for x in vals) else vals


def magnitudes(vals):
    return spread([Val(x.a, x.ax) for x in vals])[0]


@table
def linear(f, x, y):
    x, y = reals(x, y)
    (v, w), ax = spread([x, y])
    absent = both(np.logical_and, x.absent, y.absent) if x.absent is not None and y.absent is not None else None
    with np.errstate(invalid="ignore"):
        if not x.real:
            return Val(f(v, w), ax, None, absent)
        p, q = magnitudes([x, y])
        # A score of -inf excludes its key, also where what it was added to is NaN or infinite: a compiler may take either.
        r, a = carried(f(v, w), p + q)
        masked = np.isnan(r) & (np.isinf(v) | np.isinf(w))
        if masked.any():
            r, a = open_where(masked, r, a)
        return Val(r, ax, a, absent, deep=not x.static and not y.static, empty=x.empty and y.empty)


@table
def times(x, y):
    x, y = reals(x, y)
    marks = [m for m in (x.absent, y.absent) if m is not None]
    absent = both(np.logical_or, *marks) if len(marks) == 2 else marks[0] if marks else None
    if not x.real:
        (v, w), ax = spread([x, y])
        return Val(v * w, ax, None, absent)
    factors = [Val(f._v, f.ax, f._a, deep=f.deep, empty=f.empty) for z in (x, y) for f in (z.factors or [z])]
    ax = []
    for f in factors:
        ax += [k for k in f.ax if k not in ax]
    return Val(None, ax, None, absent, factors, empty=x.empty or y.empty)


@table
def quotient(x, y):
    x, y = reals(x, y)
    if not x.real:
        x, y = real(x), real(y)
    (v, w), ax = spread([x, y])
    p, q = magnitudes([x, y])
    with np.errstate(all="ignore"):
        r = v / w
        a = np.where(np.isinf(w) & np.isfinite(v), p * 0, (p + np.abs(r) * q) / np.abs(w))
        a = np.where(np.isnan(a) & np.where(np.isnan(r), is_made(v, p) & ~np.isnan(w), ~np.isnan(p) & ~np.isnan(q)), np.inf, a)
        r, a = carried(r, a)
        r, a = open_where((np.abs(w) < LEAST) & (w != 0) & ~np.isnan(r), r, a)  # f32 may have 0 there
        if x.empty:
            r, a = open_where(np.isnan(w), r, a)
        return Val(r, ax, a, x.absent, empty=x.empty)


def over(x, y):
    """x / y, of sizes too: where one is 0, so is an axis, and nothing is read of it."""
    return x / y if isinstance(x, Val) or isinstance(y, Val) or y else quotient(x, y)


@table
def whole(f, x, y):
    (v, w), ax = spread([val(x), val(y)])
    with np.errstate(all="ignore"):
        return Val(np.where(w == 0, 0, f(v, np.where(w == 0, 1, w))), ax)


def real(x):
    return Val(x.v.astype(float), x.ax, np.abs(x.v).astype(float), x.absent, exact=True, static=x.static) if not x.real else x


@table
def compare(f, x, y):
    x, y = reals(x, y)
    (v, w), ax = spread([x, y])
    if x.real:
        p, q = magnitudes([x, y])
        with np.errstate(invalid="ignore"):
            near = (np.abs(v - w) <= 2 * FACTOR * 2.0 ** -24 * (p + q)) | is_open(v, p) | is_open(w, q)
        if not (x.exact and y.exact) and reached(near, ax):
            raise Tie
    return Val(f(v, w), ax)


def equal(x, y): return compare(np.equal, x, y)
def negate(x): return Val(~x.v, x.ax)


def reached(v, ax):
    """Does v hold anywhere that the guards let through?"""
    if not v.any():
        return False
    arrays, _ = spread([Val(v, ax)] + STACK)
    together = arrays[0]
    for g in arrays[1:]:
        together = together & g
    return bool(together.any())


def place(x, ax):
    """x's array with one axis for each of ax."""
    order = sorted(range(len(x.ax)), key=lambda k: ax.index(x.ax[k]))
    v = x.v.transpose(order)
    have = iter(v.shape)
    return v.reshape([next(have) if k in x.ax else 1 for k in ax])


def index(axis):
    return Val(np.arange(axis.n), (axis,), exact=True, static=True)


def guarded(cond, body):
    STACK.append(cond)
    try:
        return body()
    finally:
        STACK.pop()


def throughout(axes, body):
    """The body at all places of the axes: nowhere, if one is empty."""
    at = lambda: body(*map(index, axes))
    return at() if all(k.n for k in axes) else guarded(val(False), at)


def also(x, y):  # and
    return both(np.logical_and, x, guarded(x, y))


def either(x, y):  # or
    return both(np.logical_or, x, guarded(negate(x), y))


def choose(c, x, y):
    c = val(c)  # of a step and sizes alone it is a bool
    x, y = reals(guarded(c, x), guarded(negate(c), y))
    (k, v, w), ax = spread([c, x, y])
    none = Val(np.zeros((), bool))
    absent = None
    if x.absent is not None or y.absent is not None:
        absent = both(np.where, c, x.absent or none, y.absent or none)
    a = None
    if x.real:
        (k, p, q), _ = spread([c, Val(x.a, x.ax), Val(y.a, y.ax)])
        a = np.where(k, p, q)
    return Val(np.where(k, v, w), ax, a, absent, deep=x.deep or y.deep)


class Tensor:
    """v (and a, absent) dense, one axis per index. `kind` rounds reals that are stored."""

    def __init__(self, v, a=None, absent=None, exact=False, deep=False, empty=False):
        self.v, self.a, self.absent, self.exact, self.deep, self.empty = v, a, absent, exact, deep, empty

    def __getitem__(self, at):
        at = [val(x) for x in (at if isinstance(at, tuple) else (at,))]
        plain = [x for x in at if len(x.ax) == 1 and x.v.size and x.v[0] == 0 and x.v[-1] == x.ax[0].n - 1 and x.ax[0].n == len(x.v) and (np.diff(x.v) == 1).all()]
        if len(plain) == len(at) and len({id(x.ax[0]) for x in at}) == len(at) and all(x.ax[0].n <= n for x, n in zip(at, self.v.shape)):
            ax = [x.ax[0] for x in at]
            cut = tuple(slice(0, k.n) for k in ax)
            get = lambda w: w[cut]
        elif not at:
            ax, get = (), lambda w: w
        else:
            arrays, ax = spread(at)
            inside = np.ones([1] * len(ax), bool)
            for x, n in zip(arrays, self.v.shape):
                inside = inside & (x >= 0) & (x < n)
            if reached(~inside, ax):
                raise Wrong(f"a read outside of {self.v.shape}")
            if 0 in self.v.shape:
                get = lambda w: np.zeros(np.broadcast_shapes(*[x.shape for x in arrays]), w.dtype)
            else:
                places = tuple(np.clip(x, 0, n - 1) for x, n in zip(arrays, self.v.shape))
                get = lambda w: w[places]
        absent = None if self.absent is None else Val(get(self.absent), ax)
        return Val(get(self.v), ax, None if self.a is None else get(self.a), absent, exact=self.exact, deep=self.deep, empty=self.empty)


def constant(value):
    """A table of numbers as a tensor; a number stays one."""
    v = np.asarray(value)
    return value if not v.ndim else Tensor(v, np.abs(v) if v.dtype.kind == "f" else None, exact=True)


def dense(x, axes):
    """x over exactly these axes, in their order."""
    shape = [k.n for k in axes]
    if math.prod(shape) > LIMIT:
        raise Large
    fill = lambda v: np.array(np.broadcast_to(place(Val(v, x.ax), list(axes)), shape), order="C")
    return Tensor(fill(x.v), None if not x.real else fill(x.a),
                  None if x.absent is None else np.broadcast_to(place(x.absent, list(axes)), shape), x.exact, x.deep, x.empty)


def tensor(extents, body, merged=None):
    """The tensor body(i, j, ..) over these extents; `merged`: groups of axes that become one."""
    axes = [Axis(n) for n in extents]
    t = dense(reals(throughout(axes, body))[0], axes)
    if merged is None:
        return t
    shape = [math.prod(axes[k].n for k in group) for group in merged]
    get = lambda w: None if w is None else w.reshape(shape)
    return Tensor(get(t.v), get(t.a), get(t.absent), t.exact, t.deep, t.empty)


def store(collection, at, t):
    """One slice of a collection, or the row of a step; None: all of an axis."""
    key = tuple(slice(None) if x is None else int(val(x).v) for x in at)
    collection.v[key], collection.a[key] = t.v, t.a


def collection(shape):
    return Tensor(np.full([int(n) for n in shape], np.nan), np.zeros([int(n) for n in shape]), deep=True)


def join(*parts, at):
    absent = None
    return Tensor(np.concatenate([p.v for p in parts], at), np.concatenate([p.a for p in parts], at), absent, deep=True)
