"""Infinite numbers in the oracle. NaN stays NaN in whatever order it is added and multiplied; what becomes of an infinite number may follow
from the order. Such an element is open (`v` is OPEN, `a` NaN): any result is right."""
import numpy as np

OPEN = 0.7390851
GREATEST, LEAST = 3e38, 1e-37


def plain(x):
    """Is every number of it finite, with a bound?"""
    return not x.real or np.isfinite(x.v).all() and np.isfinite(x.a).all()


def is_open(v, a):
    return np.isnan(a) & ~np.isnan(v)


def open_where(mark, v, a):
    return np.where(mark, OPEN, v), np.where(mark, np.nan, a)


def settled(v, a):
    """Arrays whose `a` follows from its operands: what is made of an open element is open, unless it is NaN."""
    return (v, a) if a is None else (np.where(is_open(v, a), OPEN, v), a)


def opened(factors, vs, as_, ax, axes):
    """Where a product, summed along `axes`, is open. An infinite factor makes it so beside a sum, which may be multiplied out to terms of both
    signs, where it is one, as of several sums any may come first, and where it may be moved out of the sum; and what multiplies a sum over nothing may be left out."""
    mark = nan = unknown = False
    for k, (f, v, a) in enumerate(zip(factors, vs, as_)):
        rest = factors[:k] + factors[k + 1:]
        unknown = unknown | is_open(v, a)
        if any(g.empty for g in rest):
            unknown = unknown | ~np.isfinite(v)
        else:
            nan = nan | np.isnan(v)
            if any(g.deep for g in rest) or axes and (f.deep or any(x not in f.ax for x in axes)):
                mark = mark | np.isinf(v)
    return unknown | mark & ~nan  # a weight that is open may be an absent one, and then nothing is seen of its value
