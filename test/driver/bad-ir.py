# RUN: rm -rf %t && mkdir -p %t && %python %s %heed_bin %t
"""IR that a person wrote and that is no model as docs/ir.md describes it: one error at its place, no crash, no file."""
import os
import pathlib
import sys

from runs import expect, finish, run

heedc = pathlib.Path(sys.argv[1]) / "heedc"
os.chdir(sys.argv[2])


def identity(type, attributes='attn.name = "x"', result=None, name="@m", after=None):
    return (f"func.func {name}(%x: {type} {{{attributes}}}) -> ({after or type} {{{result or ''}}}) attributes {{attn.model}} {{\n"
            f"  return %x : {type}\n}}\n")


TYPES = "expected a ranked tensor of f32, f16, bf16, i1, i8, i32 or i64"
CASES = {
    "f64": (identity("tensor<?xf64>"), f"argument 0 is 'tensor<?xf64>', {TYPES}, or a scalar f32, i1, i32 or i64"),
    "i7": (identity("tensor<4xi7>"), "argument 0 is 'tensor<4xi7>'"),
    "vector": (identity("tensor<4xvector<4xf32>>"), "argument 0 is 'tensor<4xvector<4xf32>>'"),
    "unranked": (identity("tensor<*xf32>"), "argument 0 is 'tensor<*xf32>'"),
    "memref": (identity("memref<?xf32>"), "argument 0 is 'memref<?xf32>'"),
    "index": (identity("index"), "argument 0 is 'index'"),
    "scalar": (identity("f32"), f"result 0 is 'f32', {TYPES}\n"),
    "rank": (identity("tensor<" + 17 * "1x" + "f32>"), "argument 0 has 17 axes, expected at most 16"),
    "name": (identity("tensor<4xf32>", "attn.name = 3"), "argument 0: expected a string as 'attn.name', found 3"),
    "dims": (identity("tensor<4x4xf32>", 'attn.dims = ["N"]'), "argument 0: expected 'attn.dims' to be a string for each axis"),
    "dim": (identity("tensor<4xf32>", result="attn.dims = [7]"), "result 0: expected 'attn.dims'"),
    "twice": ('func.func @m(%x: tensor<f32> {attn.name = "x"}, %y: tensor<f32> {attn.name = "x"}) -> tensor<f32> attributes '
              "{attn.model} {\n  return %x : tensor<f32>\n}", "argument 1: the name 'x' stands twice"),
    "none": ("func.func @m(%x: tensor<f32>) attributes {attn.model} {\n  return\n}", "a model has at least one result"),
    "body": ("func.func private @m(tensor<f32>) -> tensor<f32> attributes {attn.model}", "function 'm' has no body"),
    "call": ("func.func private @g()\n" + identity("tensor<f32>"), "function 'g' has no body"),
    "symbol": (identity("tensor<f32>", name='@"a b/c"'), "expected letters, digits and '_' as prefix of symbols, found 'a b/c'"),
    "nothing": ("", "expected a function with 'attn.model' in 'nothing.mlir'"),
    "cut": ("func.func @m(", "error: "),
}
for name, (text, message) in CASES.items():
    pathlib.Path(name + ".mlir").write_text(text)
    for options in (("--emit=header",), ("--emit=exe",), ("--emit=exe", "--backend=reference")):
        done = run(heedc, name + ".mlir", *options, "-o", "out")
        expect(done.returncode == 1 and message in done.stderr and done.stderr.count("error: ") == 1,
               f"{name} {options}: expected {message!r}, found exit code {done.returncode}: {done.stderr}")
        expect(not os.path.exists("out"), f"{name} {options}: a file is there")

pathlib.Path("fine.mlir").write_text(identity("tensor<?xf32>"))
for prefix in ("1x", "a-b", "a b", "x;y"):
    done = run(heedc, "fine.mlir", "--prefix", prefix, "-o", "out")
    expect(done.returncode == 1 and f"as prefix of symbols, found '{prefix}'" in done.stderr, f"{prefix}: {done.stderr}")
expect(run(heedc, "fine.mlir", "--prefix", "_x1", "--emit=header").returncode == 0, "a good prefix")
finish()
