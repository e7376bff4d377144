# RUN: %python %s %heed_bin %t
"""Products of one operand as one kernel, against float64 NumPy: one row and rows around a tile, columns that fill no vector, sums in blocks and
with a rest, batches, results that others read, too, for both widths of vectors. What makes it fast stands in its schedule."""
import pathlib
import re
import shutil
import sys

import numpy as np

import safetensors_file
from runs import expect, finish, run

heedc, folder = pathlib.Path(sys.argv[1]) / "heedc", pathlib.Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
rng = np.random.default_rng(5)

THREE = """import "nn.heed"
model m(x: f32[B, N, %(d)d]) {
  q = linear(x, O = %(o)d, at = "q")
  k = linear(x, O = %(o)d, at = "k")
  v = linear(x, O = %(o)d, at = "v")
  return q, k, v
}
"""
GATED = """import "nn.heed"
model m(x: f32[B, N, %(d)d]) {
  g = silu(linear(x, O = %(o)d, at = "q"))
  u = linear(x, O = %(o)d, at = "k")
  y[b, n, o] = g[b, n, o] * u[b, n, o]
  return y%(also)s
}
"""


def silu(x):
    return x / (1 + np.exp(-x))


def compiled(name, source, d, o, *options):
    path = folder / f"{name}.heed"
    path.write_text(source % {"d": d, "o": o, "also": ", u" if name.startswith("also") else ""})
    weights = {f"{k}.weight": rng.standard_normal((o, d)).astype("f4") / np.float32(np.sqrt(d)) for k in "qkv"}
    weights |= {f"{k}.bias": rng.standard_normal(o).astype("f4") for k in "qkv"}
    safetensors_file.write(folder / f"{name}.safetensors", weights)
    done = run(heedc, path, "--explain=all", "-o", folder / name, *options)
    expect(done.returncode == 0, f"{name}: {done.stderr}")
    expect("products of one operand in one kernel" in done.stderr, f"{name}: nothing was merged")
    return path, weights


def check(name, source, d, o, sizes, *options):
    path, weights = compiled(name, source, d, o, *options)
    one = lambda x, k: x @ weights[f"{k}.weight"].T.astype("f8") + weights[f"{k}.bias"]
    for b, n in sizes:
        x = rng.standard_normal((b, n, d)).astype("f4")
        np.save(folder / "x.npy", x)
        wanted = {k: one(x.astype("f8"), k) for k in "qkv"}
        if source == GATED:
            wanted = {"y": silu(wanted["q"]) * wanted["k"]} | ({"u": wanted["k"]} if name.startswith("also") else {})
        outputs = [a for k in wanted for a in ("--output", f"{k}={folder}/{k}.npy")]
        done = run(folder / name, "--weights", folder / f"{name}.safetensors", "--x", folder / "x.npy", "--threads", 2, *outputs)
        expect(done.returncode == 0, f"{name} {b} {n}: {done.stderr}")
        for k, values in wanted.items():
            error = np.abs(np.load(folder / f"{k}.npy") - values).max(initial=0) if done.returncode == 0 else 0
            expect(error < 2e-5 * max(1, np.abs(values).max(initial=0)), f"{name} {b} {n}: {k} differs by {error}")


few = [(1, 0), (1, 1), (2, 3), (1, 8), (3, 43)]
check("three", THREE, 40, 40, few)
check("three8", THREE, 40, 72, few, "--target=x86-64-v3")
long = [(1, 1), (1, 17), (5, 13), (1, 130)]
check("three_long", THREE, 1160, 1000, long)
check("three_long8", THREE, 1160, 1000, long, "--target=x86-64-v3")
check("gated", GATED, 33, 100, few)
check("also_gated", GATED, 64, 48, few)
check("gated_long", GATED, 2601, 40, [(1, 1), (2, 9)])

# One sum in place of three: the operand's row is read by one update, a panel has the columns of one product, and a tile's
# products are computed in turn.
path, _ = compiled("schedule", THREE, 384, 384, "--target=x86-64-v4")
done = run(heedc, path, "--emit=halide", "--target=x86-64-v4", "-o", "-")
pipeline = re.search(r"halide\.pipeline @m_contractions .*?\n  }\n", done.stdout, re.S)
expect(pipeline, done.stdout[:2000])
text = pipeline.group(0) if pipeline else ""
expect(text.count("halide.update ") == 1 and text.count("halide.parallel ") == 1, "expected one sum and one parallel loop")
for pattern in (r'"results" .*: f32, f32, f32 {', r'halide\.compute_at %sum0_all_tiles, %results, "mb"',
                r'halide\.compute_at %sum0_all, %sum0_all_tiles, "product"', r'halide\.set_stride %panel0, 2 to %c18432_i32',
                r'halide\.prefetch_lines %sum0_all stage 1, %panel0 at "r0" ahead 55296 over %results, "mb" by 12'):
    expect(re.search(pattern, text), f"expected {pattern}")
# One row has a tile of one row, chosen when it runs, and reads the same panels.
one = re.search(r"halide\.pipeline @m_contractions_one .*?\n  }\n", done.stdout, re.S)
expect(one and re.search(r'halide\.bound_extent %sum0_all, "d0" extent %c1_i32', one.group(0)), "expected a tile of one row")
expect(re.search(r"arith\.cmpi eq, .*?scf\.if .*?halide\.call @m_contractions_one\(.*?else.*?@m_contractions\(", done.stdout, re.S), "expected a choice by rows")
expect(len(re.findall(r"halide\.pipeline @\w*_pack ", done.stdout)) == 1 and len(re.findall(r"attn\.keep ", done.stdout)) == 1,
       "expected one packed weight")

# Few rows of a weight that no cache holds: blocks that the first cache holds, all tiles of one in turn, while the next comes, line by line, into the second.
for target, rows in ("x86-64-v4", 64), ("x86-64-v3", 32):
    path, _ = compiled(f"few_{rows}", THREE, 1280, 1280, f"--target={target}")
    done = run(heedc, path, "--emit=halide", f"--target={target}", "-o", "-")
    few = re.search(r"halide\.pipeline @m_contractions_few .*?\n  }\n", done.stdout, re.S)
    many = re.search(r"halide\.pipeline @m_contractions attributes.*?\n  }\n", done.stdout, re.S)
    expect(few and many and "halide.specialize" not in few.group(0) + many.group(0), f"{target}: expected pipelines for few rows and for many")
    spread = few and re.search(r'halide\.prefetch_spread .* at "r0" ahead (\d+) over %sum0_all, "product" lines (\d+) turns 1 by 1 second_cache in_order', few.group(0))
    expect(spread, f"{target}: expected the next block to be fetched")
    first = int(re.search(r"L1: (\d+)", run(heedc, "--print-target", f"--target={target}").stdout).group(1))
    ahead, lines = map(int, spread.groups()) if spread else (0, 0)
    expect(lines == ahead // 16 and first / 4 < 4 * ahead <= first / 2, f"{target}: {ahead} {lines}")
    expect(re.search(rf"arith\.cmpi sle, %\w+, %c{rows} ", done.stdout), f"{target}: expected a choice by rows")
finish()
