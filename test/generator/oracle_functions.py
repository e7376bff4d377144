"""Built-in functions and conversions of the oracle: the value in float64 and how it carries the error of its argument."""
import math

import numpy as np

from infinite import GREATEST, is_open, open_where, settled
from oracle import *
from oracle_reductions import reduce, softmax

erf = np.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    with np.errstate(over="ignore"):
        return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def slope(f):
    """|f'| by a difference wide enough to see a steep neighbourhood."""
    def at(x):
        h = 1e-6 * np.maximum(1, np.abs(x))
        return np.abs(f(x + h) - f(x - h)) / (2 * h)
    return at


# name: value, |derivative|, absolute error of a good f32 program in units of 2^-24 (approximations are not relatively exact)
SMOOTH = {
    "exp": (np.exp, np.exp, 0), "exp2": (np.exp2, lambda x: np.exp2(x), 0), "expm1": (np.expm1, np.exp, 0.1),
    "log": (np.log, lambda x: 1 / np.abs(x), 0.5), "log2": (np.log2, lambda x: 1.5 / np.abs(x), 0.5),
    "log1p": (np.log1p, lambda x: 1 / np.abs(1 + x), 0.1),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(np.abs(x)), 0), "rsqrt": (lambda x: 1 / np.sqrt(x), lambda x: 0.5 / np.abs(x) ** 1.5, 0),
    "sin": (np.sin, lambda x: np.abs(np.cos(x)), 1), "cos": (np.cos, lambda x: np.abs(np.sin(x)), 1),
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2, 0.1), "sigmoid": (sigmoid, lambda x: sigmoid(x) * sigmoid(-x), 0),
    "erf": (erf, lambda x: 1.13 * np.exp(-x * x), 0.5),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), lambda x: np.ones_like(x), 0.1),
    "silu": (lambda x: x * sigmoid(x), lambda x: np.full_like(x, 1.1), 0),
    "softplus": (lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), sigmoid, 0.5),
    "gelu": (lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))), lambda x: np.full_like(x, 1.2), 0.5),
    "gelu_tanh": (gelu_tanh, lambda x: np.full_like(x, 1.2), 0.5),
    "abs": (np.abs, lambda x: np.ones_like(x), 0), "relu": (lambda x: np.maximum(x, 0), lambda x: np.ones_like(x), 0),
}
JUMPS = {"floor": np.floor, "ceil": np.ceil, "round": np.round, "sign": np.sign}


@table
def call(name, *args):
    args = [val(x) for x in args]
    if name in ("min", "max"):
        return pick(np.minimum if name == "min" else np.maximum, *args)
    if name == "clamp":
        return pick(np.minimum, pick(np.maximum, args[0], args[1]), args[2])
    x, = args
    if name in ("abs", "relu", "sign") and not x.real:
        return Val({"abs": np.abs, "relu": lambda v: np.maximum(v, 0), "sign": np.sign}[name](x.v), x.ax)
    x = real(x)
    if name in JUMPS:
        with np.errstate(invalid="ignore"):
            edge = x.v - np.floor(x.v) if name != "round" else x.v - np.floor(x.v) - 0.5
            edge = np.abs(x.v) if name == "sign" else np.minimum(np.abs(edge), np.abs(edge - 1))
            near = (edge <= 2 * FACTOR * 2.0 ** -24 * x.a) | is_open(x.v, x.a)
        if not x.exact and reached(near, x.ax):
            raise Tie
        v = JUMPS[name](x.v)
        return Val(v, x.ax, np.abs(v), exact=True)
    f, df, floor_ = SMOOTH[name]
    with np.errstate(all="ignore"):
        v = f(x.v)
        steep = df(x.v)
        a = np.abs(v) + np.where((x.a == 0) | np.isinf(x.v) & np.isfinite(v), 0, steep * x.a) + floor_
        mark = is_open(x.v, x.a) | (np.isfinite(v) & (np.abs(v) > GREATEST))  # there f32 overflows
        if np.isinf(x.v).any():
            # Of exp(-inf) a compiler may make an absent element; what has no limit may be NaN or not.
            mark = mark | (x.v == -np.inf) & (name in ("exp", "exp2")) | np.isinf(x.v) & np.isnan(v)
    return Val(*(lambda v, a: (v, x.ax, a))(*open_where(mark, v, np.where(np.isnan(a) & ~np.isnan(v), np.inf, a))))


@table
def pick(f, x, y):
    x, y = reals(x, y)
    (v, w), ax = spread([x, y])
    if not x.real:
        return Val(f(v, w), ax)
    p, q = magnitudes([x, y])
    return Val(*(lambda v, a: (v, ax, a))(*settled(f(v, w), np.maximum(p, q))))


@table
def power(x, y, integer):
    """`integer`: of integers with a literal exponent, which stays integer."""
    x, y = val(x), val(y)
    (v, w), ax = spread([x, y])
    if integer and not x.real:
        return Val(v ** w, ax)
    x, y = real(x), real(y)
    p, q = magnitudes([x, y])
    with np.errstate(all="ignore"):
        r = np.power(v.astype(float), w.astype(float))
        steep = np.abs(w * np.power(v.astype(float), w - 1.0))
        grow = np.where(q > np.abs(w), np.abs(r * np.log(np.abs(v))) * q, 0)
        # A power with a whole exponent is a product: what it has of an absent element is absent.
        r, a = settled(r, np.abs(r) * 2 + np.where(w == 0, 0, steep * p) + grow)
        return Val(r, ax, a, x.absent if integer and w.size == 1 and w.item() >= 1 else None)


def rounded(v, kind):
    """v rounded to a storage type, in float64."""
    if kind == "bf16":
        bits = v.astype(np.float32).view(np.uint32)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
        return np.where(np.isnan(v), np.nan, bits.astype(np.uint32).view(np.float32)).astype(float)
    with np.errstate(over="ignore"):
        return v.astype({"f16": np.float16, "f32": np.float32}[kind]).astype(float)


def cast(kind, x):
    x = val(x)
    if kind in UNIT:
        if kind == "f32":
            return Val(x.v.astype(float), x.ax, np.abs(x.v).astype(float) if not x.real else x.a, x.absent, exact=x.exact, deep=x.deep)
        x = real(x)
        # Where no error crosses a boundary the rounded value is exact.
        error = 0.0 if x.exact else x.a * FACTOR * 2.0 ** -24
        with np.errstate(invalid="ignore"):
            v, low, high = (rounded(x.v + e, kind) for e in (0, -error, error))
            a = np.abs(v) + np.nan_to_num(high - low, nan=0.0) / (FACTOR * 2.0 ** -24)
            v, a = open_where(is_open(x.v, x.a), v, a)
        return Val(v, x.ax, a, x.absent, deep=x.deep)
    if kind == "bool":
        return Val(x.v != 0, x.ax)
    lo, hi = {"i8": (-128, 127), "i32": (-2 ** 31, 2 ** 31 - 1), "i64": (-2 ** 63, 2 ** 63 - 1)}[kind]
    if not x.real:
        return Val((x.v.astype(np.int64) - lo) % (hi - lo + 1) + lo, x.ax)
    with np.errstate(invalid="ignore"):
        near = (np.abs(x.v - np.round(x.v)) <= 2 * FACTOR * 2.0 ** -24 * x.a) | is_open(x.v, x.a)
    if not x.exact and reached(near, x.ax):
        raise Tie
    return Val(np.clip(np.trunc(np.nan_to_num(x.v, nan=0.0)), lo, hi).astype(np.int64), x.ax)
