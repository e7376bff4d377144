# RUN: %python %s %heed_bin/heedc %t
"""Every built-in function on every type that it takes, over that type's range, from both backends, against NumPy in float64.

f32: numbers of each binade of both signs, denormal ones, infinities, NaN; f16 and bf16: every number; i8: every number, i32 and
i64: the ends, the neighbours of powers of two, and numbers between. What is below the least normal number may be 0.
With a target after the folder, for that one alone (device-builtins.test).
"""
import math
import sys

import numpy as np

import programs
from runs import expect, finish

np.seterr(all="ignore")  # what overflows here is meant to

EXACT, FEW = 0.0, 4e-7  # relative; FEW is about three roundings of f32
erf = np.vectorize(math.erf, otypes=[float])
sigmoid = lambda x: np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-abs(x)))
INNER = math.sqrt(2 / math.pi)
# name -> (text, NumPy, allowed relative error, allowed error for the size of the argument, beside it)
REAL = {
    "abs": ("abs(x[i])", np.abs, EXACT, 0),
    "sign": ("sign(x[i])", np.sign, EXACT, 0),
    "floor": ("floor(x[i])", np.floor, EXACT, 0),
    "ceil": ("ceil(x[i])", np.ceil, EXACT, 0),
    "round": ("round(x[i])", np.rint, EXACT, 0),
    "relu": ("relu(x[i])", lambda x: np.maximum(x, 0), EXACT, 0),
    "min": ("min(x[i], 1.5)", lambda x: np.minimum(x, 1.5), EXACT, 0),
    "max": ("max(x[i], -1.5)", lambda x: np.maximum(x, -1.5), EXACT, 0),
    "clamp": ("clamp(x[i], -0.5, 2)", lambda x: np.clip(x, -0.5, 2), EXACT, 0),
    "exp": ("exp(x[i])", np.exp, FEW, 0),
    "exp2": ("exp2(x[i])", np.exp2, FEW, 0),
    "expm1": ("expm1(x[i])", np.expm1, FEW, 0),
    "log": ("log(x[i])", np.log, FEW, 0),
    "log2": ("log2(x[i])", np.log2, FEW, 0),
    "log1p": ("log1p(x[i])", np.log1p, FEW, 0),
    "sqrt": ("sqrt(x[i])", np.sqrt, FEW, 0),
    "rsqrt": ("rsqrt(x[i])", lambda x: 1 / np.sqrt(x), FEW, 0),
    "sin": ("sin(x[i])", np.sin, FEW, 1e-7),
    "cos": ("cos(x[i])", np.cos, FEW, 1e-7),
    "tan": ("tan(x[i])", np.tan, FEW, 1e-7),
    "tanh": ("tanh(x[i])", np.tanh, 6e-7, 0),
    "erf": ("erf(x[i])", erf, 1e-6, 0),
    "sigmoid": ("sigmoid(x[i])", sigmoid, FEW, 0),
    "elu": ("elu(x[i])", lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), FEW, 0),
    "silu": ("silu(x[i])", lambda x: np.where(np.isinf(x), np.where(x > 0, x, np.nan), x) * sigmoid(x), 6e-7, 0),
    "softplus": ("softplus(x[i])", lambda x: np.maximum(x, 0) + np.log1p(np.exp(-abs(x))), FEW, 0),
    # 1 + erf cancels below zero: what is left of one rounding of 1 is multiplied by the argument.
    "gelu": ("gelu(x[i])", lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))), 2e-6, 2e-7),
    "gelu_tanh": ("gelu_tanh(x[i])", lambda x: 0.5 * x * (1 + np.tanh(INNER * (x + 0.044715 * x**3))), 2e-6, 2e-7),
}
DIGITS = {"f32": 24, "f16": 11, "bf16": 8}
# Where a function's value at an argument that is no finite number is not in question.
ENDS = {"silu", "gelu", "gelu_tanh", "sin", "cos", "tan"}


def numbers(kind):
    if kind == "f16":
        return np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    if kind == "bf16":
        return (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
    random = np.random.default_rng(7)
    bits = (np.arange(1, 255, dtype=np.uint32)[:, None] << 23) | random.integers(0, 1 << 23, (254, 60), dtype=np.uint32)
    ends = np.array([0, 1e-40, 2.0**-149, np.inf, np.nan, 0.5, 1.5, 2.5, 2**23 + 1, 88.72, 88.722832, 88.722839, 88.722847, 88.73, 104, 128, 3.4028235e38], np.float32)
    some = np.concatenate([bits.view(np.float32).ravel(), ends])
    return np.concatenate([some, -some])


def within(name, kind, x, got, want, relative, beside):
    """Which elements are what they should be. f16 and bf16 round once more."""
    with np.errstate(all="ignore"):
        rounding = 0 if DIGITS[kind] == 24 else 2.0**-DIGITS[kind]
        # A quotient by 1 + exp(-x) is 0 where that ends.
        tiny = 2.0**-24 if kind == "f16" else 2.0**-120 if name in ("sigmoid", "silu") else 2.0**-126
        top = 65504 if kind == "f16" else float(np.finfo(np.float32).max)
        near = abs(got - want) <= (relative + rounding) * abs(want) + beside * np.minimum(abs(x), 1e4) + tiny
        # What rounds to an infinity may be the largest number.
        same = np.where(np.isfinite(want) & np.isfinite(got), near, (got == want) | (np.isnan(got) & np.isnan(want)))
        same |= (abs(want) >= top * (1 - 2 * relative - 2 * rounding)) & (np.sign(got) == np.sign(want)) & (abs(got) >= top * (1 - 2 * relative - 2 * rounding))
    if name in ENDS:
        same |= ~np.isfinite(x)
    if name in ("sin", "cos", "tan"):
        same |= abs(x) > 1e4
    if name == "rsqrt":  # a denormal number is 0 to some
        same |= (abs(x) < 2.0**-126) & ~np.isnan(got)
    if name in ("min", "max", "clamp", "relu", "sign"):  # which operand a NaN gives way to
        same |= np.isnan(x)
    return same


programs.start(*sys.argv[1:3])
# Options of each program, by what it is compiled with.
WITH = {f"--target={name}": (f"--target={name}",) for name in sys.argv[3:]} or {name: (f"--backend={name}",) for name in ("halide", "reference")}
RESULTS = ",\n    ".join(f"r_{name}[i] = f32({text})" for name, (text, *_) in REAL.items())
for kind in ("f32", "f16", "bf16"):
    # A tensor of bf16 is read from one of f32.
    given = "f32" if kind == "bf16" else kind
    source = f"model real(t: {given}[N]) {{\n  x[i] = {kind}(t[i])\n  return {RESULTS}\n}}\n"
    x = numbers(kind)
    with np.errstate(all="ignore"):
        wanted = {name: function(x.astype(np.float64)) for name, (_, function, *_) in REAL.items()}
    for backend, options in WITH.items():
        program = programs.compile(f"{kind}-{backend}", source, *options)
        found = programs.outputs(program, {"t": x}, [f"r_{name}" for name in REAL])
        if not isinstance(found, dict):
            expect(False, f"{kind}, {backend}: {found.stderr}")
            continue
        for name, (_, _, relative, beside) in REAL.items():
            got = found[f"r_{name}"].astype(np.float64)
            same = within(name, kind, x.astype(np.float64), got, wanted[name], relative, beside)
            worst = [(float(x[k]), got[k], wanted[name][k]) for k in np.flatnonzero(~same)[:4]]
            expect(same.all(), f"{name} of {kind}, {backend}: {(~same).sum()} of {x.size} differ: (argument, found, expected) {worst}")

INTEGER = {
    "abs": ("abs(x[i])", np.abs), "sign": ("sign(x[i])", np.sign), "relu": ("relu(x[i])", lambda x: np.maximum(x, 0)),
    "min": ("min(x[i], 3)", lambda x: np.minimum(x, 3)), "max": ("max(x[i], -3)", lambda x: np.maximum(x, -3)),
    "clamp": ("clamp(x[i], -5, 6)", lambda x: np.clip(x, -5, 6)),
    "floor": ("floor(x[i])", lambda x: x), "ceil": ("ceil(x[i])", lambda x: x), "round": ("round(x[i])", lambda x: x),
}
ROUNDED = {name: REAL[name] for name in ("exp", "sqrt", "tanh", "sigmoid", "sin", "softplus", "log1p")}
for kind in ("i8", "i32", "i64"):
    bits = int(kind[1:])
    powers = [s * (1 << k) + d for k in range(bits - 1) for d in (-1, 0, 1) for s in (-1, 1)]
    x = np.arange(-128, 128) if bits == 8 else np.array(sorted({-(1 << (bits - 1)), (1 << (bits - 1)) - 1, *powers}))
    x = x.astype(f"int{bits}")
    lines = [f"a_{name}[i] = {text}" for name, (text, _) in INTEGER.items()] + [f"b_{name}[i] = {text}" for name, (text, *_) in ROUNDED.items()]
    source = f"model whole(x: {kind}[N]) {{\n  return " + ",\n    ".join(lines) + "\n}\n"
    for backend, options in WITH.items():
        program = programs.compile(f"{kind}-{backend}", source, *options)
        found = programs.outputs(program, {"x": x}, [line.split("[")[0] for line in lines])
        if not isinstance(found, dict):
            expect(False, f"{kind}, {backend}: {found.stderr}")
            continue
        for name, (_, function) in INTEGER.items():
            with np.errstate(all="ignore"):
                want = function(x)
            bad = np.flatnonzero(found[f"a_{name}"] != want)
            expect(not bad.size, f"{name} of {kind}, {backend}: {[(x[k], found[f'a_{name}'][k], want[k]) for k in bad[:4]]}")
        for name, (_, function, relative, beside) in ROUNDED.items():
            with np.errstate(all="ignore"):
                want = function(x.astype(np.float32).astype(np.float64))
            got = found[f"b_{name}"].astype(np.float64)
            same = within(name, "f32", x.astype(np.float64), got, want, relative, beside)
            expect(same.all(), f"{name} of {kind}, {backend}: {[(x[k], got[k], want[k]) for k in np.flatnonzero(~same)[:4]]}")
finish()
