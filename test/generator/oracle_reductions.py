"""Reductions and softmax of the oracle, on the values of `oracle`: what is absent, what infinite numbers make of a row, and the bound of each."""
import math

import numpy as np

from infinite import is_open, is_unbounded, open_where, plain, settled, unbounded_where
from oracle import *


def reduce(op, extents, body, where=None):
    """`op` of `body` over new axes of `extents`, where `where` holds. Long: one operation after the other."""
    axes = [Axis(n) for n in extents]
    names = list(map(index, axes))
    mask = throughout(axes, where) if where else None
    at = lambda: val(throughout(axes, body))
    x = guarded(mask, at) if mask is not None else at()
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
                total, size = unbounded_where(np.any(is_unbounded(v, a) & keep, over) & ~np.any(np.isnan(v) & keep, over), total, size)
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
            # An element of -inf that is there is larger than one that is not.
            best = np.where(w.max(-1, initial=-np.inf) == -np.inf, keep.argmax(-1), best)
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
