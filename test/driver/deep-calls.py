# RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin %t
"""Expressions that grow through the functions that they call compile, or are one error; no recursion of the compiler ends it."""
import os
import pathlib
import sys

from runs import expect, finish, run

heedc = pathlib.Path(sys.argv[1]) / "heedc"
os.chdir(sys.argv[2])


def compiles(name, text, message=None):
    pathlib.Path(name + ".heed").write_text(text)
    done = run(heedc, name + ".heed", "--emit=halide", "-o", name + ".mlir")
    if message is None:
        expect(done.returncode == 0, f"{name}: {done.returncode}: {done.stderr[-300:]}")
    else:
        expect(done.returncode == 1 and done.stderr.count("error: ") == 1 and message in done.stderr,
               f"{name}: expected {message!r}, found {done.returncode}: {done.stderr[-300:]}")
        expect(not os.path.exists(name + ".mlir"), f"{name}: a file is there")


chain = "fn f0(x: f32[N]) {\n  return y[i] = x[i] + 1\n}\n" + "".join(
    f"fn f{k}(x: f32[N]) {{\n  t = f{k - 1}(x)\n  return y[i] = t[i] + 1\n}}\n" for k in range(1, 300))
compiles("chain", chain + "model m(x: f32[N]) {\n  return y = f299(x)\n}\n")
recursive = "fn f(x; n) = if n == 0 then x else {}f(x, n = n-1){} * 2\nmodel m(x: f32[N]) {{\n  return y[i] = f(x[i], n={})\n}}\n"
compiles("counted", recursive.format("", "", 900))
compiles("high", recursive.format("(" * 240, ")" * 240, 190), "an expression higher than 16384 operators")
compiles("endless", recursive.format("", "", "0 - 1"), "'f' calls itself without end")
layers = "fn f(x: f32[N]; n) {\n  if n == 0 {\n    return x\n  } else {\n    t = f(x, n = n-1)\n    return y[i] = " + "-" * 200 + \
    "t[i]\n  }\n}\nmodel m(x: f32[N]) {\n  return y = f(x, n = 150)\n}\n"
compiles("layers", layers)
finish()
