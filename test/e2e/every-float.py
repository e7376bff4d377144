# RUN: %python %s %heed_bin %t
"""Functions that are expressions of our own are exact to their bounds over the floats of their range: the weights' exp, in softmax
(every float) and without a normaliser, tanh, exp, expm1 and what is made of them where arguments are known to end or 1 is added.

Scores are powers of two's exponents: a constant of ln 2 cancels the log2(e) that scores are multiplied by, so t below is exactly
what the expression gets. The bounds are those of docs and sources: 1.7e-7 of the polynomial, and the roundings around it.
"""
import pathlib
import shutil
import sys

import numpy as np

from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
WEIGHTS = {"softmax": "softmax(j) s[i, j]", "plain": "exp(s[i, j])"}
MODEL = """model m(t: f32[N, 1], k: f32[2, 1], v: f32[2]) {
  s[i, j] = sum(e) t[i, e] * k[j, e] * 0.6931471805599453
  w[i, j] = %s
  return o[i] = sum(j) w[i, j] * v[j]
}"""
# Relative error; what lies below 2^-120 may be 0.
LIMIT, TINY = 3.5e-7, 2.0**-120
np.save(folder / "k.npy", np.array([[0], [1]], np.float32))
np.save(folder / "v.npy", np.array([0, 1], np.float32))


def larger(a, b):
    """A NaN if one is: Python's max drops it."""
    return float(np.maximum(a, b))


def computed(name, t):
    np.save(folder / "t.npy", t[:, None])
    done = run(folder / name, *(x for n in "tkv" for x in (f"--{n}", folder / f"{n}.npy")), "--output", folder / "o.npy")
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    return np.load(folder / "o.npy")


def worst(name, t):
    """The largest relative error of the results for `t`."""
    exact = np.exp2(t, dtype=np.float64)
    if name == "softmax":
        exact /= 1 + exact
    found = computed(name, t)
    error = np.abs(found - exact)
    live = exact >= TINY
    expect((found[~live] <= 2 * TINY).all() and (found[~live] >= 0).all(), f"{name}: below 2^-120 beyond twice that")
    error[live] /= exact[live]
    return float(error[live].max(initial=0.0))


for name, weights in WEIGHTS.items():
    (folder / f"{name}.heed").write_text(MODEL % weights)
    done = run(heedc, folder / f"{name}.heed", "-o", folder / name)
    expect(done.returncode == 0, done.stderr)
    # Every float from -128 to -2^-24, a binade at a time; without a normaliser every eighth one of both signs.
    signs, step = ([-1], 1) if name == "softmax" else ([-1, 1], 8)
    largest = 0.0
    for exponent in range(-24, 7):
        ones = np.arange(0, 1 << 23, step, dtype=np.uint32) | np.uint32((127 + exponent) << 23)
        for sign in signs:
            t = ones.view(np.float32) * np.float32(sign)
            largest = larger(largest, worst(name, t[t < 127]))
    largest = larger(largest, worst(name, np.array([0.0, -0.0, -1e-30, -1e-40, -128, -1e4, -1e30], np.float32)))
    print(f"{name}: largest relative error {largest:.2e}")
    expect(largest <= LIMIT, f"{name}: {largest:.2e} is above {LIMIT}")

# One at a time: every eighth float of a range of exponents and both signs, and what lies at the ends.
ENDS = np.array([0, -0.0, 1e-40, -1e-40, 17, 200, -200, -1e30, np.inf, -np.inf, np.nan], np.float32)
LOW = lambda f: lambda t, **type: np.where(t > 0, t + 1.0, f(np.minimum(t, 0), **type))
FUNCTIONS = {
    "tanh": ("tanh(t[i])", np.tanh, -30, 4, 5e-7, [0, -0.0, 1e-40, -1e-40, 1, 1, -1, -1, 1, -1, np.nan]),
    "exp": ("exp(t[i])", np.exp, -30, 7, 3e-7, [1, 1, 1, 1, np.exp(17), np.inf, 0, 0, np.inf, 0, np.nan]),
    "expm1": ("expm1(t[i])", np.expm1, -30, 7, 2e-7, [0, -0.0, 1e-40, -1e-40, np.expm1(17), np.inf, -1, -1, np.inf, -1, np.nan]),
    "expm1 below 88": ("expm1(min(t[i], 5))", lambda t, **type: np.expm1(np.minimum(t, 5), **type), -30, 7, 2e-7,
                       [0, -0.0, 1e-40, -1e-40, np.expm1(5), np.expm1(5), -1, -1, np.expm1(5), -1, np.nan]),
    "elu and 1": ("elu(t[i]) + 1", LOW(np.exp), -30, 7, 3e-7, [1, 1, 1, 1, 18, 201, 0, 0, np.inf, 0, np.nan]),
}
for name, (text, function, first, end, limit, ends) in FUNCTIONS.items():
    (folder / f"{name}.heed").write_text("model m(t: f32[N]) { return y[i] = %s }" % text)
    done = run(heedc, folder / f"{name}.heed", "-o", folder / name)
    expect(done.returncode == 0, done.stderr)

    def values(t):
        np.save(folder / "t.npy", t)
        done = run(folder / name, "--t", folder / "t.npy", "--output", folder / "o.npy")
        expect(done.returncode == 0, f"{name}: {done.stderr}")
        return np.load(folder / "o.npy")

    largest = 0.0
    for exponent in range(first, end):
        for sign in (-1, 1):
            t = (np.arange(0, 1 << 23, 8, dtype=np.uint32) | np.uint32((127 + exponent) << 23)).view(np.float32) * np.float32(sign)
            exact = function(t, dtype=np.float64)
            # Where f32 ends and its denormal numbers begin, another test speaks.
            speaks = (abs(exact) < 2.0**127) & (abs(exact) > TINY)
            t, exact = t[speaks], exact[speaks]
            if t.size:
                largest = larger(largest, (np.abs(values(t) - exact) / np.abs(exact)).max())
    print(f"{name}: largest relative error {largest:.2e}")
    expect(largest <= limit, f"{name}: {largest:.2e} is above {limit}")
    found, wanted = values(ENDS), np.array(ends, np.float32)
    expect(np.allclose(found, wanted, rtol=limit, atol=0, equal_nan=True) and
           (np.signbit(found) == np.signbit(wanted))[:-1].all(), f"{name} at the ends: {found}, expected {wanted}")
finish()
