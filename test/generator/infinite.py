"""Infinite numbers in the oracle. NaN stays NaN in whatever order it is added and multiplied; what becomes of an infinite number may follow
from the order. Such an element is open (`v` is OPEN, `a` NaN): any result is right.

A NaN that an infinite number makes in a sum of products (0 * inf, inf - inf) is `made`: `v` is NaN, `a` inf. Where such sums are factors of
another sum, its terms may be added first, and what was a 0 is none any more (docs/language.md, axiom distribute). That sum is `unbounded` (`v` is inf,
`a` NaN): infinite or NaN, never a finite number."""
import numpy as np

OPEN = 0.7390851
GREATEST, LEAST = 3e38, 1e-37


def plain(x):
    """Is every number of it finite, with a bound?"""
    return not x.real or np.isfinite(x.v).all() and np.isfinite(x.a).all()


def is_open(v, a):
    return np.isnan(a) & ~np.isnan(v)


def is_unbounded(v, a):
    return np.isnan(a) & np.isinf(v)


def is_made(v, a):
    return np.isnan(v) & np.isinf(a)


def open_where(mark, v, a):
    return np.where(mark, OPEN, v), np.where(mark, np.nan, a)


def settled(v, a):
    """Arrays whose `a` follows from its operands: what is made of an open element is open, unless it is NaN."""
    return (v, a) if a is None else (np.where(is_open(v, a), OPEN, v), a)


def carried(v, a):
    """The same of sums and quotients, in which an infinite number stays unbounded."""
    return np.where(is_open(v, a), np.where(np.isinf(v), np.inf, OPEN), v), a


def unbounded_where(mark, v, a):
    return np.where(mark, np.inf, v), np.where(mark, np.nan, a)


def product_magnitude(v, a, vs, as_):
    """`a` of a product `v`: a NaN that no factor is was made here, or in one of them."""
    given = False
    for f, g in zip(vs, as_):
        given = given | np.isnan(f) & ~is_made(f, g)
    return np.where(np.isnan(v), np.where(given, np.nan, np.inf), np.where(np.isnan(a), np.inf, a))


def unbounded(factors, vs, as_, ax, axes):
    """Where a product, summed along `axes`, is unbounded: a factor is a made NaN in a sum that runs along one of them too."""
    mark = given = False
    for f, v, a in zip(factors, vs, as_):
        moved = is_made(v, a) if f.deep and any(x in f.ax for x in axes) else False
        mark, given = mark | moved, given | np.isnan(v) & ~moved
    return mark & ~given


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
