"""Compares a result with the oracle's: NaN exactly where it is expected, each element within the error that what it depends on allows."""
import numpy as np

from infinite import is_open, is_unbounded
from inputs import from_bf16
from oracle import FACTOR, UNIT

ROW = 2e-6   # of the row's largest element: DESIGN.md allows 1e-5


def as_float(result):
    r, kind = result
    return from_bf16(r).astype(float) if kind == "bf16" else r.astype(float)


def judge(result, want, what):
    """None, or what is wrong: the first element that differs. Counts what no f32 program can get right as agreeing."""
    return judge_values(as_float(result), result[1], want, what)


def judge_values(got, kind, want, what):
    """Of values in float64 that were stored as `kind`."""
    v = np.asarray(want.v, float)
    if got.shape != v.shape:
        return f"{what}: expected shape {list(v.shape)}, found {list(got.shape)}"
    if want.a is None:
        bad = got != v
        return report(what, got, v, bad, np.zeros_like(v)) if bad.any() else None
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.where(np.isfinite(v), np.abs(v), 0)
        top = np.max(finite, -1, keepdims=True, initial=0) if v.ndim else finite
        bound = FACTOR * 2.0 ** -24 * (want.a + UNIT.get(kind, 1) * np.abs(v)) + ROW * top + 1e-30
        # Without a bound there is no judgement, but for NaN.
        free = ~np.isfinite(bound) & np.isfinite(v) | (want.a > 2.0 ** 17 * np.maximum(np.abs(v), 1e-30)) & (want.a > 1e3)
        # What is near f32's greatest number may overflow.
        free |= np.isfinite(v) & (np.abs(v) + np.nan_to_num(bound) > 3e38)
        close = (np.abs(got - v) <= bound) & np.isfinite(v) | (got == v) | (np.isnan(got) & np.isnan(v)) | free & ~np.isnan(got)
        close |= is_open(v, want.a) & ~(is_unbounded(v, want.a) & np.isfinite(got))
    return report(what, got, v, ~close, bound) if not close.all() else None


def unjudged(want):
    """The share of elements whose error is not bounded to a thousandth of their row."""
    if want.a is None or not want.v.size:
        return 0.0
    v = np.abs(np.where(np.isfinite(want.v), want.v, 0))
    top = np.max(v, -1, keepdims=True, initial=0) if v.ndim else v
    return float(np.mean(((FACTOR * 2.0 ** -24 * want.a > 1e-2 * top + 1e-30) | np.isnan(want.a)) & np.isfinite(want.v)))


def report(what, got, v, bad, bound):
    at = tuple(int(k) for k in np.argwhere(bad)[0])
    return (f"{what}: {int(bad.sum())} of {bad.size} elements differ; [{', '.join(map(str, at))}]: expected {v[at]:.9g}, "
            f"found {got[at]:.9g}, allowed {bound[at]:.2g}")
