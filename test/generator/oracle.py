"""What the NumPy printer's text runs on: values with named axes in float64, each with a bound of its error.

Beside a value `v` stands a magnitude `a`: an f32 program that may reassociate has an error of at most a small multiple of
2^-24 * a there. It follows what the element depends on: of a sum the sum of magnitudes, of f(x) |f(x)| + |f'(x)| a.
`absent` marks what the `where` of a softmax, or a score of -inf, excludes: sums leave it out (LANGUAGE.md, "Guards").
Of infinite numbers see `infinite`.
"""
import math

import numpy as np

from infinite import LEAST, is_open, open_where, opened, plain, settled

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
            a = np.where(np.isnan(a) & ~np.isnan(v), np.inf, a)
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
        r, a = settled(f(v, w), p + q)
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
        a = np.where(np.isnan(a) & ~np.isnan(p) & ~np.isnan(q), np.inf, a)
        r, a = settled(r, a)
        r, a = open_where((np.abs(w) < LEAST) & (w != 0) & ~np.isnan(r), r, a)  # f32 may have 0 there
        if x.empty:
            r, a = open_where(np.isnan(w), r, a)
        return Val(r, ax, a, x.absent, empty=x.empty)


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


def also(x, y):  # and
    return both(np.logical_and, x, guarded(x, y))


def either(x, y):  # or
    return both(np.logical_or, x, guarded(negate(x), y))


def choose(c, x, y):
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
    t = dense(reals(body(*map(index, axes)))[0], axes)
    if merged is None:
        return t
    shape = [math.prod(axes[k].n for k in group) for group in merged]
    get = lambda w: None if w is None else w.reshape(shape)
    return Tensor(get(t.v), get(t.a), get(t.absent), t.exact, t.deep, t.empty)


def store(collection, at, t):
    """One slice of a collection."""
    key = tuple(int(val(x).v) for x in at)
    collection.v[key], collection.a[key] = t.v, t.a


def collection(shape):
    return Tensor(np.full([int(n) for n in shape], np.nan), np.zeros([int(n) for n in shape]), deep=True)


def join(*parts, at):
    absent = None
    return Tensor(np.concatenate([p.v for p in parts], at), np.concatenate([p.a for p in parts], at), absent, deep=True)


def reduce(op, extents, body, where=None):
    axes = [Axis(n) for n in extents]
    names = list(map(index, axes))
    mask = where(*names) if where else None
    x = guarded(mask, lambda: val(body(*names))) if mask is not None else val(body(*names))
    marks = [] if mask is None else [mask]
    gone = [negate(x.absent)] if x.absent is not None and op in ("sum", "mean") else []
    empty = op == "sum" and (x.empty or not all(k.n for k in axes))
    # A factor that the sum over nothing does not run over: it may have been moved out of it.
    outside = [f for f in x.factors or () if op == "sum" and not all(k.n for k in axes) and not plain(f) and not any(k in f.ax for k in axes)]
    if x.factors and op == "sum" and all(k.n for k in axes):
        if all(map(plain, x.factors)):
            quick = contract(x.factors, marks + gone, axes)
            if quick is not None:
                return quick
        else:
            v, a = x.multiplied([k for k in axes if k in x.ax])
            x = Val(v, x.ax, a, x.absent)
    ax = spread([x, *marks, *gone, *names])[1]
    kept = [k for k in ax if k not in axes]
    full, over = list(kept) + axes, tuple(range(len(kept), len(ax)))
    shape = [k.n for k in full]
    if math.prod(shape) > LIMIT:
        raise Large
    v = np.broadcast_to(place(x, full), shape)
    keep = np.ones(shape, bool)
    for m in marks:
        keep = keep & place(m, full)
    count = keep.sum(over)
    for m in gone:
        keep = keep & place(m, full)
    if op in ("any", "all"):
        return Val(np.any(v & keep, over) if op == "any" else np.all(v | ~keep, over), kept)
    if v.dtype.kind == "b":
        v = v.astype(np.int64)
    a = np.broadcast_to(place(Val(x.a, x.ax), full), shape) if x.real else None
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        if op in ("sum", "mean"):
            total = np.sum(v, over, where=keep)
            size = None if a is None else np.sum(a, over, where=keep)
            if a is not None:
                # One that is open and infinite ones: open.
                mark = np.any((is_open(v, a) | np.isinf(v) & x.deep) & keep, over) & ~np.any(np.isnan(v) & keep, over)
                total, size = open_where(mark, total, size)
                for f in outside:
                    total, size = open_where(np.broadcast_to(place(Val(~np.isfinite(f.v), f.ax), kept), total.shape), total, size)
            if op == "sum":
                return Val(total, kept, size, deep=True, empty=empty)
            some = np.maximum(count, 1)
            return Val(np.where(count == 0, 0.0, total / some), kept, (np.abs(total) * 1.0 if size is None else size) / some, deep=True)
        if op == "prod":
            r = np.prod(v, over, where=keep)
            share = np.where(v == 0, 1, a / np.abs(v))
            a = np.abs(r) * (1 + np.sum(share, over, where=keep)) + np.where((v == 0).any(over), np.prod(np.maximum(a, 1), over), 0)
            return Val(*(lambda v, a: (v, kept, a))(*settled(r, a)), deep=True)
        if op in ("max", "min"):
            f, first = (np.max, -np.inf) if op == "max" else (np.min, np.inf)
            if a is None:
                v = v.astype(float)
            r = f(v, over, where=keep, initial=first)
            if a is None:
                return Val(r.astype(np.int64), kept)
            return Val(*(lambda v, a: (v, kept, a))(*settled(r, np.max(a, over, where=keep, initial=0))), deep=True)
        if op == "argmax":
            flat = lambda w: w.reshape([k.n for k in kept] + [math.prod(k.n for k in axes)])
            v, keep, a = flat(v), flat(keep), flat(a)
            if is_open(v, a).any():
                raise Tie
            if v.shape[-1] == 0:
                return Val(np.full(v.shape[:-1], -1), kept)
            w = np.where(keep, v, -np.inf)
            best = np.where(np.isnan(w).any(-1), np.isnan(w).argmax(-1), w.argmax(-1))
            top = np.take_along_axis(w, best[..., None], -1)
            near = keep & (np.abs(w - top) <= 2 * FACTOR * 2.0 ** -24 * (a + np.take_along_axis(a, best[..., None], -1)))
            if (near.sum(-1) > 1).any():
                raise Tie
            return Val(np.where(keep.any(-1), best, -1), kept)
    raise TypeError(op)


def contract(factors, marks, axes):
    """Sum of a product by einsum, None where a value that is left out is not finite (times zero it would show)."""
    if marks and not all(np.isfinite(f.v).all() for f in factors):
        return None
    every = []
    for f in factors + marks:
        every += [k for k in f.ax if k not in every]
    unused = [k for k in axes if k not in every]
    if len(every) > 50:
        return None
    kept = [k for k in every if k not in axes]
    letters = [every.index(k) for k in kept]
    args = lambda pick: [y for f in factors for y in (pick(f), [every.index(k) for k in f.ax])] + [
        y for m in marks for y in (m.v.astype(float), [every.index(k) for k in m.ax])]
    times_ = math.prod(k.n for k in unused)
    with np.errstate(invalid="ignore", over="ignore"):
        v = np.einsum(*args(lambda f: f.v), letters, optimize="greedy")
        a = np.einsum(*args(lambda f: f.a), letters, optimize="greedy")
    return Val(v * times_, kept, a * times_, deep=True)


def thresholded(z, over, map):
    """Weights of scores less their row's maximum, by sorting, and the scores less the threshold."""
    rows = np.maximum(z, -8).reshape(z.shape[:len(z.shape) - len(over)] + (-1,))  # what lies lower has no weight
    down = -np.sort(-rows / (1 if map == "sparsemax" else 2), -1)
    k = np.arange(1, down.shape[-1] + 1)
    mean, square = np.cumsum(down, -1) / k, np.cumsum(down**2, -1) / k
    if map == "sparsemax":
        t = mean - 1 / k
        inside = t < down
    else:
        t = mean - np.sqrt(np.maximum((1 - k * (square - mean**2)) / k, 0))
        inside = t <= down
    t = np.take_along_axis(t, np.maximum(inside.sum(-1, keepdims=True) - 1, 0), -1).reshape(z.shape[:len(z.shape) - len(over)] + (1,) * len(over))
    x = z - t if map == "sparsemax" else z / 2 - t
    return np.where(np.isnan(x), x, np.maximum(x, 0) ** (1 if map == "sparsemax" else 2)), x


def softmax(names, body, where=None, sink=None, log=False, map="softmax"):
    axes = [n.ax[0] for n in names]
    mask = where() if where else None
    s = guarded(mask, lambda: real(val(body()))) if mask is not None else real(val(body()))
    t = real(val(sink())) if sink else None
    vals = [s] + ([mask] if mask is not None else []) + ([t] if t is not None else []) + list(names)
    ax = spread(vals)[1]
    full = [k for k in ax if k not in axes] + axes
    over = tuple(range(len(full) - len(axes), len(full)))
    shape = [k.n for k in full]
    if math.prod(shape) > LIMIT:
        raise Large
    v, a = (np.broadcast_to(place(Val(w, s.ax), full), shape) for w in (s.v, s.a))
    keep = np.ones(shape, bool) if mask is None else np.broadcast_to(place(mask, full), shape)
    if s.absent is not None:
        keep = keep & ~place(s.absent, full)
    keep = keep & (v != -np.inf)
    # What a score is that is open, its row follows.
    unknown = (is_open(v, a) & keep).any(over, keepdims=True) & keep
    with np.errstate(all="ignore"):
        a = np.where(keep & np.isfinite(a), a, 0)
        top = np.max(v, over, where=keep, initial=-np.inf, keepdims=True)
        extra = 0.0
        if t is not None:
            sv = place(t, full)
            top = np.maximum(top, sv)
            extra = np.where(sv == -np.inf, 0, np.exp(sv - top))
        if map != "softmax" and v.size:
            # No score moves a weight by more than it moves itself and the threshold; far below that its error does not show.
            w, x = thresholded(np.where(keep, v - np.where(top == -np.inf, 0, top), -np.inf), over, map)
            w = np.where(keep & np.isnan(w).any(over, keepdims=True), np.nan, np.where(keep, w, 0))
            near = keep & ~(x < -0.01 - 1e-5 * (a + np.max(a, over, initial=0, keepdims=True)))
            p, a = open_where(unknown, w, np.where(near, a + np.max(a, over, where=near, initial=0, keepdims=True) + 2, 0))
            return Val(p, full, a, Val(~keep, full), deep=True)
        x = np.where(keep, np.exp(v - np.where(top == -np.inf, 0, top)), 0)
        z = x.sum(over, keepdims=True) + extra
        p = np.where(keep, x / np.where(z == 0, 1, z), 0)
        mean = (p * a).sum(over, keepdims=True)
        sa = 0 if t is None else np.abs(place(t, full))
        if log:
            r = np.where(keep, v - np.where(top == -np.inf, 0, top) - np.log(z), -np.inf)
            r, a = open_where(unknown, r, np.abs(np.where(keep, r, 0)) + a + mean + sa + 1)
            return Val(r, full, a, deep=True)
        p, a = open_where(unknown, p, p * (2 + a + mean + sa))
        return Val(p, full, a, Val(~keep, full), deep=True)
