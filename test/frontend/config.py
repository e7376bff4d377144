# RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin %t
"""What a `config` file gives a model: constants, none, records, lists, and defaults for what it lacks."""
import json
import os
import pathlib
import sys

from runs import expect, finish, run

heedc = pathlib.Path(sys.argv[1]) / "heedc"
os.chdir(sys.argv[2])
CONFIG = {
    "heads": 6, "eps": 1e-5, "whole": 2.0, "causal": True, "kind": "full", "window": None, "empty": [], "odd": [1, "a"],
    "sizes": [3, 5, 8], "scales": [0.5, 2], "table": [[1, 2], [3, 4]], "flags": [True, False],
    "layer_types": ["full", "window", "full"], "grid": [["a", "b"], ["c", "d"]], "records": [{"a": 1}], "holes": [1, None],
    "rope": {"factor": 7, "type": "yarn", "none": None, "inner": {"deep": 9, "list": [4, 5]}, "for": 11},
    "nothing": {}, "a.b": 1, "ids": {"0": "x"},
}
pathlib.Path("config.json").write_text(json.dumps(CONFIG))


def compiled(text, *options):
    pathlib.Path("m.heed").write_text(text)
    return run(heedc, "m.heed", "--emit=attn", *options)


def size(expression, expected, head='config "config.json"'):
    """An extent that the expression gives."""
    done = compiled(f"{head}\nmodel m(x: f32[N]) {{\n  return y[n, k:{expression}] = x[n]\n}}\n")
    expect(done.returncode == 0 and f"-> (tensor<?x{expected}xf32>" in done.stdout, f"{expression}: {done.stderr}{done.stdout}")


def chosen(condition, head='config "config.json"'):
    """That a static condition holds."""
    done = compiled(f"{head}\nmodel m(x: f32[N]) {{\n  if {condition} {{ y[n, k:1] = x[n] }} else {{ y[n, k:2] = x[n] }}\n  return y\n}}\n")
    expect(done.returncode == 0 and "-> (tensor<?x1xf32>" in done.stdout, f"{condition}: {done.stderr}{done.stdout}")


def wrong(line, message, head='config "config.json"'):
    done = compiled(f"{head}\nmodel m(x: f32[N]) {{\n  {line}\n}}\n")
    expect(done.returncode == 1 and message in done.stderr, f"{line}: expected {message!r}, found {done.stderr}{done.stdout}")


# Values.
size("heads", 6)
size("heads // 2", 3)
size("whole", 2)
size("sizes[2]", 8)
size("table[1, 0]", 3)
size("extent(sizes, 0)", 3)
for condition in ("causal", 'kind == "full"', 'kind != "window"', "eps < 1e-4", "scales[0] < 1", "flags[0] and not flags[1]",
                  'layer_types[1] == "window"', 'grid[1, 0] == "c"', "extent(layer_types, 0) == 3", "window == none", "heads != none",
                  "layer_types != none"):
    chosen(condition)

# Records, none in them, and entries of none.
size("rope.factor", 7)
size("rope.inner.deep", 9)
size("rope.inner.list[1]", 5)
size("rope.for", 11)  # no word is reserved behind a point
for condition in ('rope.type == "yarn"', "rope != none", "rope.none == none", "rope.none.more == none", "window.factor == none",
                  "nothing != none", "rope.inner.list[0] == 4", "rope.factor != none"):
    chosen(condition)

# A constant of a file, a default of its config and of a record's entry mean that file's names, whoever reads them.
pathlib.Path("lib.heed").write_text('''config "config.json", width = 5, double = width * 2, rope.more = width
const four = width - 1
fn spread(x: [N]) { return y[n, k:double] = x[n] }
fn more(x: [N]; record) { return y[n, k:record.more] = x[n] }
''')
for expression, expected in (("double", 10), ("four", 4), ("rope.more", 7), ("width", 7)):
    size(expression, expected, 'import "lib.heed"\nconfig "config.json", width = 7, rope.more = width')
for call, expected in (("spread(x)", 10), ("more(x, record = rope)", 7)):
    done = compiled(f"""import "lib.heed"
config "config.json", width = 7, rope.more = width
model m(x: f32[N]) {{
  z[n, k:double] = x[n]
  return y = {call}
}}
""")
    expect(done.returncode == 0 and f"-> (tensor<?x{expected}xf32>" in done.stdout, f"{call}: {done.stderr}{done.stdout}")

# Numbers that JSON has no word for, as Python's json and transformers write them.
INFINITE = 'config "infinite.json"'
pathlib.Path("infinite.json").write_text('{"text": "Infinity", "bare": [0.5, -Infinity, Infinity], "one": Infinity, "record": {"__float__": "-Infinity"},'
                                         ' "list": [1.5, {"__float__": "Infinity"}, {"__float__": "2.5"}], "no": {"__float__": "many"}}')
for condition in ('text == "Infinity"', "bare[0] == 0.5 and bare[1] == -inf and bare[2] == inf", "one == inf", "record == -inf",
                  "list[0] == 1.5 and list[1] == inf and list[2] == 2.5"):
    chosen(condition, INFINITE)
wrong("return y[n] = x[n] * no", "needs numbers, found a record", INFINITE)
pathlib.Path("nan.json").write_text('{"a": NaN}')
wrong("return y[n] = x[n]", "is not JSON", 'config "nan.json"')

# Of what kind an entry is.
for expression, kind in (("heads", "number"), ("window", "none"), ("rope", "record"), ("rope.type", "string"), ("layer_types", "list"), ("sizes", "table"),
                         ("heads == 6", "bool")):
    chosen(f'kind({expression}) == "{kind}"')

# A record and a list as static arguments; a string in a name.
done = compiled("""config "config.json"
fn repeat(x: [N]; by, kinds, l) {
  if kinds[l] == "window" { y[n, k:by.factor] = x[n] } else { y[n, k:by.inner.deep] = x[n] }
  return y
}
model m(x: f32[N]) {
  param w: f32[heads] @ "{rope.type}.weight"
  return a = repeat(x, by = rope, kinds = layer_types, l = 1), b = repeat(x, by = rope, kinds = layer_types, l = 2), c[h] = w[h]
}
""")
expect(done.returncode == 0 and "-> (tensor<?x7xf32>" in done.stdout and "tensor<?x9xf32>" in done.stdout and '"yarn.weight"' in done.stdout,
       f"arguments: {done.stderr}{done.stdout}")
# A loop that asks a list of strings is unrolled, as it is for one of numbers.
done = compiled("""config "config.json"
model m(x: f32[N]) {
  for l in 0..3 {
    if layer_types[l] == "window" { x[n] = x[n] * 3 } else { x[n] = x[n] + 1 }
  }
  return y[n] = x[n]
}
""")
expect(done.returncode == 0 and done.stdout.count("3.000000e+00") == 1 and "scf.for" not in done.stdout, f"loop: {done.stderr}{done.stdout}")

# Defaults, for what is missing and nothing else; on several lines.
DEFAULTS = """config "config.json", heads = 99, theta = 10, window = 4, rope.factor = 98, rope.beta = 32,
  window.size = 3, made.of = 12, made.deep.er = 13, head_dim = heads * 2, list = [1, 2], kind.of = 5,
  absent = none"""
for expression, expected in (("heads", 6), ("theta", 10), ("rope.factor", 7), ("rope.beta", 32), ("made.of", 12), ("made.deep.er", 13),
                             ("head_dim", 12), ("list[1]", 2)):
    size(expression, expected, DEFAULTS)
for condition in ("window == none", "window.size == none", "absent == none", "made != none", "absent.what == none"):
    chosen(condition, DEFAULTS)
# A file's own constant is over its config's, which is over an import's.
size("heads", 3, 'config "config.json", heads = 4\nconst heads = 3')
pathlib.Path("inner.heed").write_text('config "config.json", theta = 5\nconst heads = 77\n')
size("theta", 5, 'import "inner.heed"')
size("heads", 6, 'import "inner.heed"\nconfig "config.json"')

# Mistakes.
wrong("return y[n] = x[n] * window", "'*' needs numbers, found none")
wrong("return y[n] = x[n] * rope", "'*' needs numbers, found a record")
wrong("return y[n] = x[n] + rope.type", "'+' needs numbers, found a string")
wrong("return y[n] = x[n] * layer_types", "'*' needs numbers, found a list of strings")
wrong("return y[n] = x[n] * rope.factr", "unknown name 'rope.factr'; did you mean 'rope.factor'?")
wrong("return y[n] = x[n] * heads.more", "unknown name 'heads.more'")
wrong("return y[n] = x[n] * ropee.factor", "unknown name 'ropee.factor'; did you mean 'rope.factor'?")
wrong("return y[n] = x[n] * records", "unknown name 'records'")
wrong("return y[n] = x[n] * odd[0]", "a table holds strings or numbers, not both")
wrong("return y[n, k:sizes[3]] = x[n]", "index 3 of 'sizes' is outside its extent 3")
wrong('if layer_types[3] == "full" { y[n] = x[n] }', "index 3 of 'layer_types' is outside its extent 3")
wrong('if layer_types[0, 0] == "full" { y[n] = x[n] }', "'layer_types' has 1 axis, 2 indices are given")
wrong('return y[n] = if layer_types[n] == "full" then x[n] else 0', "'layer_types' is a list of strings: its indices must be static")
wrong("if rope == rope { y[n] = x[n] }", "'==' between a record and a record")
wrong('if rope == "yarn" { y[n] = x[n] }', "'==' between a record and a string")
wrong('if layer_types == "full" { y[n] = x[n] }', "'==' between a list of strings and a string")
wrong("return y[n] = rope[n]", "'rope' is a scalar, not a tensor")
wrong("return y[n] = window.list[n]", "'window.list' is none here")
wrong("rope.factor = 3", "expected")
wrong("dim rope.factor = 3", "expected")
wrong("return y[n] = x[n] * rope. factor", "unexpected character '.'")
wrong("return y[n] = x[n] * rope.factor()", "expected")
wrong("return y[n] = x[n]", "no such file or directory", 'config "missing.json", a = 1')
wrong("return y[n] = x[n]", "expected '='", 'config "config.json", a')
wrong("return y[n] = x[n]", "expected a name", 'config "config.json", "a" = 1')
finish()
