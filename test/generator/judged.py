"""What the judge takes of a NaN that an infinite number makes: where an order of contraction may change, NaN or infinity, and NaN alone anywhere else."""
import numpy as np

from judge import judge_values
from oracle import Tensor, tensor
from oracle_functions import call, reduce

failures = 0


def expect(what, result, taken):
    """`taken`: which of NaN, infinity and a finite number the judge takes in the place [0, 0]."""
    global failures
    for name, value in (("nan", np.nan), ("inf", -np.inf), ("finite", 1.0)):
        got = np.array(result.v)
        got[0, 0] = value
        if (judge_values(got, "f32", result, what) is None) != (name in taken):
            failures += 1
            print(f"{what}: {name} is {'refused' if name in taken else 'taken'}")


def given(v):
    v = np.array(v)
    return Tensor(v, np.abs(v), exact=True)


def inner(a, b):
    """sum(j) a[j, e] * b[j, f]"""
    return tensor((2, 2), lambda e, f: reduce("sum", (2,), lambda j: a[j, e] * b[j, f]))


def outer(kv, q, f=lambda x: x):
    """sum(e) f(kv[e, f]) * q[i, e]"""
    return tensor((1, 2), lambda i, g: reduce("sum", (2,), lambda e: f(kv[e, g]) * q[i, e]))


q, zero = given([[1.0, -2.0]]), given([[0.0, 1.0], [1.0, 1.0]])
infinite, minus = given([[np.inf, 1.0], [1.0, 1.0]]), given([[np.inf, 1.0], [-np.inf, 1.0]])
for what, product in ("0 * inf", inner(zero, infinite)), ("inf - inf", inner(given([[1.0, 1.0], [1.0, 2.0]]), minus)):
    expect(what, product, {"nan"})
    expect(f"{what}, summed on", outer(product, q), {"nan", "inf"})
    expect(f"{what}, summed on beside a term", tensor((1, 2), lambda i, g: outer(product, q)[i, g] + q[i, g]), {"nan", "inf"})
    expect(f"{what}, by a function", outer(product, q, lambda x: call("tanh", x)), {"nan"})
    # Of one factor for all terms the NaN is in each of them, whatever comes first.
    expect(f"{what}, not along the sum", tensor((2, 2), lambda e, f: reduce("sum", (2,), lambda j: product[e, f] * q[0, j])), {"nan"})
nan = inner(zero, given([[np.nan, 1.0], [1.0, 1.0]]))
expect("NaN of an input", nan, {"nan"})
expect("NaN of an input, summed on", outer(nan, q), {"nan"})
none = inner(given([[0.0, 1.0], [0.0, 1.0]]), zero)
quotient = tensor((2, 2), lambda e, f: none[e, f] / given([[0.0, 1.0], [1.0, 1.0]])[e, f])
expect("0 / 0, summed on", outer(quotient, q), {"nan"})
expect("an infinite sum", inner(given([[1.0, 1.0], [1.0, 1.0]]), given([[-np.inf, 1.0], [1.0, 1.0]])), {"inf"})
raise SystemExit(failures != 0)
