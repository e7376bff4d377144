# RUN: rm -rf %t && mkdir -p %t && %python %s %heed_src %t
# The library's runtime would want the sanitizer's, which is not in Python.
# UNSUPPORTED: asan
"""Models compiled from Python: files and text, constants, weights from files and from memory, messages, explain and profile."""
import inspect
import os
import pathlib
import re
import sys
import warnings

import numpy as np

import heed
import safetensors_file
from runs import expect, fails, finish

source = pathlib.Path(sys.argv[1])
os.chdir(sys.argv[2])
warnings.simplefilter("error")
random = np.random.default_rng(2)


# A file by name or path, its text; imports and configs beside it, or where one says.
MODEL = 'import "twice.heed"\nconfig "config.json"\nmodel m(x: f32[N]; c = 1) { return y[n] = twice(x[n]) + width * c }\n'
for folder in ("here", "inc", "dir"):
    os.mkdir(folder)
pathlib.Path("here/m.heed").write_text(MODEL)
pathlib.Path("here/twice.heed").write_text("fn twice(x) = 2 * x\n")
pathlib.Path("here/config.json").write_text('{"width": 3}')
pathlib.Path("inc/twice.heed").write_text("fn twice(x) = 4 * x\n")
pathlib.Path("dir/config.json").write_text('{"width": 5}')
x = np.arange(4, dtype="f4")
expect((heed.compile("here/m.heed")(x) == 2 * x + 3).all(), "a name")
expect((heed.compile(pathlib.Path("here/m.heed"), set={"c": 2})(x) == 2 * x + 6).all(), "a path")
expect((heed.compile(MODEL, include="inc", model_dir="dir")(x) == 4 * x + 5).all(), "text, with folders")
expect((heed.compile(MODEL, include=[pathlib.Path("inc")], model_dir=pathlib.Path("dir"), backend="reference")(x) == 4 * x + 5).all(),
       "the reference backend")
expect(sorted(os.listdir(".")) == ["dir", "here", "inc"], f"left {os.listdir('.')}")

# Values of every kind.
TEXT = """model m(x: f32[N]; i = 1, r = 0.5, b = true, s = "a", t = [[1, 2], [3, 4]], e = 2.0, mask: bool[N] = none) {
  if s == "a" { y[n] = x[n] } else { y[n] = -x[n] }
  if b { y[n] = y[n] + 100 }
  return y[n] = (y[n] + i + t[1, 0] + min(e, 1000)) * r
}
"""
got = heed.compile(TEXT, set={"i": np.int32(-7), "r": 2.0, "b": False, "s": "b", "t": [[0, 0], [9, 0]], "e": float("inf"), "mask": None})(x)
expect((got == 2 * (-x - 7 + 9 + 1000)).all(), str(got))
two = "model a(x: f32[N]) { return y[n] = x[n] }\nmodel b(z: f32[N]) { return y[n] = -z[n] }\n"
expect(heed.compile(two, model="a").name == "a" and heed.compile(two).inputs[0].name == "z", "which model")
fails(TypeError, "for a constant, found object", lambda: heed.compile(TEXT, set={"i": object()}))
fails(ValueError, "found NaN", lambda: heed.compile(TEXT, set={"r": float("nan")}))
fails(ValueError, "without quotes", lambda: heed.compile(TEXT, set={"s": 'a"'}))

# The compiler's own text: place, line, caret.
try:
    heed.compile("model m(x: f32[N]) {\n  return y[n] = xx[n]\n}\n")
except heed.CompileError as error:
    expect(str(error) == "<stdin>:2:17: error: unknown tensor 'xx'\n    return y[n] = xx[n]\n                  ^~", str(error))
else:
    expect(False, "a wrong model compiled")
fails(heed.CompileError, "here/none.heed", lambda: heed.compile("here/none.heed"))
fails(heed.CompileError, "--set zz: model 'm' has no constant or dim of that name", lambda: heed.compile(TEXT, set={"zz": 1}))
fails(heed.CompileError, "z80", lambda: heed.compile(TEXT, target="z80"))
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    m = heed.compile("model w(x: f32[N, M]) { return y[n] = sum(m) x[n, m] / sum(m) x[n, m] }")
expect(len(said) == 1 and "parentheses" in str(said[0].message) and said[0].filename == __file__, f"a warning: {[str(s) for s in said]}")

# Which compiler: $HEEDC, then PATH; else what to do.
known = os.environ.pop("HEEDC")
path = os.environ["PATH"]
os.environ["PATH"] = os.path.dirname(known)
expect(os.path.samefile(heed.find_heedc(), known), "heedc on PATH")
os.environ["PATH"] = "/no/such"
fails(heed.CompilerNotFound, "heedc is not on PATH, and $HEEDC names none: build Heed with 'make'", lambda: heed.compile(TEXT))
os.environ["PATH"] = os.path.dirname(known)
os.environ["HEEDC"] = "/no/such/heedc"
fails(FileNotFoundError, "expected a program as $HEEDC, found '/no/such/heedc'", heed.find_heedc)
os.environ["HEEDC"], os.environ["PATH"] = known, path

# Weights: a file, files, arrays. Those in memory are read where they lie, in any strides, and converted if they must be.
LINEAR = """model linear(x: f32[N, I]) {
  param w: f32[O, I] @ "layer.w" | "w"
  param b: f32[O] @ "layer.b"
  return y[n, o] = sum(i) x[n, i] * w[o, i] + b[o]
}
"""
w, b, x = (random.standard_normal(shape).astype("f4") for shape in ((6, 5), (6,), (3, 5)))
want = x.astype("f8") @ w.T.astype("f8") + b


def close(got, want, what):
    expect(got.shape == want.shape and np.abs(got - want).max() < 1e-5, what)


safetensors_file.write("w.safetensors", {"layer.w": w, "layer.b": b})
safetensors_file.write("1.safetensors", {"w": w})
safetensors_file.write("2.safetensors", {"layer.b": b})
close(heed.compile(LINEAR, weights="w.safetensors")(x), want, "a file of weights")
close(heed.compile(LINEAR, weights=["1.safetensors", pathlib.Path("2.safetensors")])(x), want, "two files of weights")
m = heed.compile(LINEAR, weights={"layer.w": w, "layer.b": b, "more": x})
close(m(x), want, "weights in memory")
expect(m.inputs[0].extents == ("N", "5"), f"what the weights say is known when compiling: {m.inputs[0].extents}")
expect("attn-" in m.explain("all"), "explain with weights in memory")
close(heed.compile(LINEAR, weights={"w": np.asfortranarray(w), "layer.b": np.repeat(b, 2)[::2]})(x), want, "strided weights")
half = heed.compile(LINEAR, weights={"w": w.astype("f2"), "layer.b": b.astype(">f4")})
close(half(x), x.astype("f8") @ w.astype("f2").T.astype("f8") + b, "f16 weights for f32")
with warnings.catch_warnings(record=True):
    warnings.simplefilter("always")
    double = {"w": w.astype("f8"), "layer.b": b}
    close(heed.compile(LINEAR, weights=double, convert=True)(x), want, "f64 weights, rounded")
    fails(heed.ElementTypeError, "'w': expected element type f32, found f64 (convert=True rounds it)", lambda: heed.compile(LINEAR, weights=double))
fails(heed.CompileError, "the weights have no 'layer.b'", lambda: heed.compile(LINEAR, weights={"w": w}))
fails(heed.CompileError, "the weights' 'layer.b' has 4", lambda: heed.compile(LINEAR, weights={"w": w, "layer.b": b[:4]}))
fails(heed.RunError, "weight 'w' is complex64", lambda: heed.compile(LINEAR, weights={"w": w.astype("c8")}))
fails(heed.RunError, "parameters", lambda: heed.compile(LINEAR))

# What was done, what it costs, what it holds.
attention = """model a(q: f32[N, E], k: f32[M, E], v: f32[M, E]) {
  p[i,j] = softmax(j) (sum(e) q[i,e] * k[j,e])
  return o[i,e] = sum(j) p[i,j] * v[j,e]
}
"""
m = heed.compile(attention, threads=1)
expect("attention, streaming" in m.explain() and "attn-raise-attention" in m.explain("all") and m.explain("json").startswith("{"), "explain")
fails(ValueError, "expected 'summary', 'all' or 'json'", lambda: m.explain("more"))
q = random.standard_normal((40, 8)).astype("f4")
profile = m.profile(q, q, v=q, runs=3)
expect(sum(kernel.calls for kernel in profile) >= 3 and all(kernel.calls % 3 == 0 for kernel in profile) and "GFLOP/s" in repr(profile),
       repr(profile))
expect(m.threads == 1 and m.target.startswith("x86-64") and m.memory().buffers >= 0, "threads, target, memory")
expect(repr(m) == "<heed model a(q: f32[N, E], k: f32[M, E], v: f32[M, E], *, out=None) -> f32[N, E]>", repr(m))

# A library that somebody else made.
os.system(f"'{known}' here/m.heed --emit=shared --prefix=other -o libother.so")
x = np.arange(4, dtype="f4")
expect((heed.load("libother.so")(x) == 2 * x + 3).all() and (heed.load("libother.so", "other")(x) == 2 * x + 3).all(), "load")
fails(heed.RunError, "no 'wrong_model' in it", lambda: heed.load("libother.so", "wrong"))
fails(heed.RunError, "a library does not hold its source", heed.load("libother.so").explain)

# docs/python.md: its program runs, and it names what there is.
text = (source / "docs/python.md").read_text()
for function in (heed.compile, heed.load):
    listed = re.search(rf"`heed\.{function.__name__}\((.*?)\)`", text)[1]
    names = list(inspect.signature(function).parameters)
    expect([name for name in listed.split(", ") if name != "*"] == names, f"docs/python.md: {function.__name__}: {listed}, {names}")
for name in re.findall(r"`m\.(\w+)", text):
    expect(hasattr(m, name), f"docs/python.md: a model has no {name}")
for name in re.findall(r"heed\.([A-Z]\w+)", text):
    expect(hasattr(heed, name), f"docs/python.md: there is no heed.{name}")
os.chdir(source)
names = {}
exec(re.search(r"```python\n(.*?)```", text, re.S)[1], names)
expect(names["o"].shape == (1, 8, 128, 64), "docs/python.md: the program")
finish()
