# RUN: env PYTHONPATH=%heed_src/python:%heed_src/test/support %python %s %heed_bin/heedc %t
# Python loads the libraries, and is no sanitized program.
# UNSUPPORTED: asan
"""--weights-type: parameters that a model declares f32 lie in memory as the checkpoint has them, bf16 or f16, or as the option says, and are computed with in f32.
Every way of reading one (products of one row and of many, a gather, an embedding that is both, a softmax's operand, a loop's and a scan's start, a result),
by both backends, against float64 NumPy on the values that are held. What is held takes two bytes an element, packed or not. A file of another type than that
which was compiled for converts when it is opened, both ways."""
import pathlib
import shutil
import sys

import numpy as np

import heed
import safetensors_file
from runs import expect, expect_error, finish, run

heedc, folder = sys.argv[1], pathlib.Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
rng = np.random.default_rng(16)
safetensors_file.DTYPES["u2"] = "BF16"  # NumPy has no bf16: its bits


def bf16(a):
    """Rounded to nearest, ties to even; its bits."""
    bits = np.asarray(a, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


STORE = {"F32": lambda a: a.astype(np.float32), "F16": lambda a: a.astype(np.float16), "BF16": bf16}
VALUE = {"F32": lambda a: a.astype(np.float64), "F16": lambda a: a.astype(np.float64),
         "BF16": lambda a: (a.astype(np.uint32) << 16).view(np.float32).astype(np.float64)}


def held(weights, file, memory):
    """The values of weights that a file has in one type and the model in another."""
    stored = {name: VALUE[file](STORE[file](a)) for name, a in weights.items()}
    return {name: VALUE[memory](STORE[memory](a.astype(np.float32))) for name, a in stored.items()}


def write(name, weights, type):
    path = folder / f"{name}.{type}.safetensors"
    safetensors_file.write(path, {key: STORE[type](a) for key, a in weights.items()})
    return path


def library(name, source, *options, backend="halide"):
    """Compiled to a library, and what the compiler says of it."""
    (folder / f"{name}.heed").write_text(source)
    out = folder / f"lib{name}.{len(list(folder.iterdir()))}.so"
    done = run(heedc, folder / f"{name}.heed", "--emit=shared", "--explain=all", f"--backend={backend}", *options, "-o", out)
    expect(done.returncode == 0, f"{name} {options}: {done.stderr}")
    return out, done.stderr


def near(found, wanted, what, tolerance=1e-5):
    error = np.abs(np.asarray(found, np.float64) - wanted).max(initial=0) / max(np.abs(wanted).max(initial=0), 1e-30)
    expect(np.shape(found) == np.shape(wanted) and error <= tolerance, f"{what}: {np.shape(found)}, error {error:.1e}")


# Every way of reading a parameter.
V, D, H, L = 51, 40, 4, 3
SOURCE = """model all(ids: i32[N], x: f32[N, D]; L = 3, H = 4) {
  param word: f32[V, D], gain, start: f32[D], scale: f32[], mix: f32[H, D], null: f32[1, D]
  e[n, d] = word[ids[n], d] * gain[d] + x[n, d]
  for l in 0..L {
    param w: f32[D, D] @ "layer.{l}.w"
    param b: f32[D] @ "layer.{l}.b"
    e[n, d] = e[n, d] + sum(k) e[n, k] * w[d, k] + b[d]
  }
  p[h, d] = softmax(d) mix[h, d]
  turned = start
  for t in 0..2 { turned[d] = turned[d] * gain[d] + 1 }
  scan t in 0..N, s: f32[D] = start {
    s[d] = 0.5 * s[d] + e[t, d]
    rows[t, d] = s[d]
  }
  wide[i: N + 1, d] = concat(i)(null[i, d], x[i, d])
  dim E = D / H
  heads[h:H, n] = sum(k:E) x[n, h*E + k] * gain[h*E + k]
  return logits[n, v] = scale[] * sum(d) e[n, d] * word[v, d], p, turned, rows, wide, mix, heads
}
"""
weights = {"word": rng.normal(size=(V, D)), "gain": rng.normal(size=D), "start": rng.normal(size=D), "scale": rng.normal(size=()), "mix": rng.normal(size=(H, D)),
           "null": rng.normal(size=(1, D))}
for l in range(L):
    weights |= {f"layer.{l}.w": rng.normal(size=(D, D)) / 7, f"layer.{l}.b": rng.normal(size=D)}
weights = {name: np.asarray(a, np.float32) for name, a in weights.items()}


def oracle(w, ids, x):
    x = x.astype(np.float64)
    e = w["word"][ids] * w["gain"] + x
    for l in range(L):
        e = e + e @ w[f"layer.{l}.w"].T + w[f"layer.{l}.b"]
    p = np.exp(w["mix"] - w["mix"].max(-1, keepdims=True))
    rows, s = [], w["start"]
    for row in e:
        s = 0.5 * s + row
        rows.append(s)
    turned = (w["start"] * w["gain"] + 1) * w["gain"] + 1
    heads = (x * w["gain"]).reshape(len(x), H, D // H).sum(-1).T
    return {"logits": w["scale"] * e @ w["word"].T, "p": p / p.sum(-1, keepdims=True), "turned": turned, "rows": np.array(rows).reshape(len(x), D),
            "wide": np.concatenate([w["null"], x]), "mix": w["mix"], "heads": heads}


def check(lib, file, values, what):
    model = heed.load(lib, weights=file)
    for n in (0, 1, 2, 70):
        ids, x = rng.integers(0, V, n).astype(np.int32), rng.normal(size=(n, D)).astype(np.float32)
        got = dict(zip(("logits", "p", "turned", "rows", "wide", "mix", "heads"), model(ids, x)))
        for name, want in oracle(values, ids, x).items():
            near(got[name], want, f"{what}, {n} rows, {name}")
    return model.memory()


files = {type: write("all", weights, type) for type in STORE}
for backend in ("halide", "reference"):
    for type, file in files.items():
        lib, said = library("all", SOURCE, "--weights", file, backend=backend)
        check(lib, file, held(weights, type, type), f"{backend}, stored, {type}")
        expect(("is converted" in said) == False, f"{type} is said to convert: {said}")
        # Compiled for one type, opened with the others.
        for other, given in files.items():
            if other != type and backend == "halide":
                check(lib, given, held(weights, other, type), f"compiled for {type}, opened with {other}")
    for option, memory in (("f32", "F32"), ("bf16", "BF16"), ("f16", "F16")):
        for type in ("F32", "BF16")[:1 + (backend == "halide")]:
            lib, said = library("all", SOURCE, "--weights", files[type], f"--weights-type={option}", backend=backend)
            check(lib, files[type], held(weights, type, memory), f"{backend}, --weights-type={option}, {type}")
            word = f"the weights' 'word' is {type}, converted to {option} when the model is opened"
            expect((word in said) == (type != memory), f"--weights-type={option}, {type}: {said}")
    # Without a file: f32, or what the option says.
    for option, memory in (((), "F32"), (("--weights-type=bf16",), "BF16")) * (backend == "halide"):
        lib, said = library("all", SOURCE, *option, backend=backend)
        check(lib, files["F16"], held(weights, "F16", memory), f"{backend}, no file, {option}")

# A loop's turns of two types are f32; so is what a model does not declare f32 what it declares.
mixed = folder / "mixed.safetensors"
safetensors_file.write(mixed, {name: STORE["F32" if name == "layer.1.w" else "BF16"](a) for name, a in weights.items()})
values = held(weights, "BF16", "BF16") | {"layer.1.w": weights["layer.1.w"].astype(np.float64)}
lib, said = library("all", SOURCE, "--weights", mixed)
check(lib, mixed, values, "layers of two types")
expect("the weights' 'layer.0.w' is BF16, converted to f32 when the model is opened" in said and "'layer.0.b'" not in said, said)
lib, _ = library("declared", "model declared(x: f16[N]) {\n  param g: f16[N], h: f32[N]\n  return y[n] = x[n] * g[n], z[n] = f32(x[n]) * h[n]\n}\n", "--weights-type=bf16")
g, h, x = (rng.normal(size=5).astype(t) for t in (np.float16, np.float32, np.float16))
file = folder / "declared.safetensors"
safetensors_file.write(file, {"g": g, "h": h})
y, z = heed.load(lib, weights=file)(x)
expect(y.dtype == np.float16 and np.array_equal(y, x * g), f"a declared f16: {y}")
near(z, x.astype(np.float64) * VALUE["BF16"](bf16(h)), "beside it")

# Matrices beyond the caches: one row, few rows, many; of products side by side; no copy in f32.
I, O = 1024, 2056
SOURCE = """model large(x: f32[N, I]) {
  param up, gate: f32[O, I] @ "up", "gate"
  param down: f32[I, O]
  u[n, o] = sum(i) x[n, i] * up[o, i]
  g[n, o] = sum(i) x[n, i] * gate[o, i]
  return y[n, i] = sum(o) silu(g[n, o]) * u[n, o] * down[i, o]
}
"""
weights = {"up": rng.normal(size=(O, I)), "gate": rng.normal(size=(O, I)), "down": rng.normal(size=(I, O))}
weights = {name: (a / 32).astype(np.float32) for name, a in weights.items()}
sizes = {}
for type in STORE:
    file = write("large", weights, type)
    lib, _ = library("large", SOURCE, "--weights", file)
    model, w = heed.load(lib, weights=file), held(weights, type, type)
    for n in (1, 2, 3, 8, 33, 70):
        x = rng.normal(size=(n, I)).astype(np.float32)
        g = x @ w["gate"].T
        near(model(x), (g / (1 + np.exp(-g)) * (x @ w["up"].T)) @ w["down"].T, f"large, {type}, {n} rows")
    sizes[type] = model.memory()
whole = 3 * I * O
expect(sizes["F32"].weights == 4 * whole and 4 * whole <= sizes["F32"].copies <= 4.4 * whole, f"f32: {sizes['F32']}")
for type in ("F16", "BF16"):
    expect(sizes[type].weights == 2 * whole and sizes[type].copies <= 2.2 * whole, f"{type}: {sizes[type]}")

# Converted, a weight that only packing reads is there once, packed.
lib, _ = library("large", SOURCE, "--weights", folder / "large.F32.safetensors", "--weights-type=bf16")
model, w = heed.load(lib, weights=folder / "large.F32.safetensors"), held(weights, "F32", "BF16")
for n in (1, 9):
    x = rng.normal(size=(n, I)).astype(np.float32)
    g = x @ w["gate"].T
    near(model(x), (g / (1 + np.exp(-g)) * (x @ w["up"].T)) @ w["down"].T, f"large, f32 rounded to bf16, {n} rows")
expect(model.memory().weights == 0 and model.memory().copies <= 2.2 * whole, f"f32 rounded to bf16: {model.memory()}")

# What does not convert.
program = folder / "program"
done = run(heedc, folder / "large.heed", "--weights", folder / "large.BF16.safetensors", "-o", program)
expect(done.returncode == 0, done.stderr)
for dtype, text in (np.int32, "expected element type bf16, found i32"), (np.float64, "expected element type bf16, found f64 (--convert rounds it)"):
    safetensors_file.write(folder / "bad.safetensors", {name: a.astype(dtype) for name, a in weights.items()})
    expect_error(run(program, "--weights", folder / "bad.safetensors", "--x", f"2x{I}", "--bench=1"), text, f"{dtype}")
finish()
