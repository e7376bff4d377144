# REQUIRES: heed-opt
# RUN: %python %s %t
"""Contractions against NumPy, at sizes around and below one tile, with walls around every array."""
import sys

import numpy as np

from guarded import GuardedModel
from runs import expect, finish

rng = np.random.default_rng(7)
folder = sys.argv[1]


def linear(rows, inner, columns, transposed):
    """relu(b[o] + sum_i x[n,i] w[o,i]); transposed: w[i,o]. None is a dynamic extent."""
    text = lambda v: "?" if v is None else str(v)
    x = f"tensor<{text(rows)}x{text(inner)}xf32>"
    w = f"tensor<{text(inner)}x{text(columns)}xf32>" if transposed else f"tensor<{text(columns)}x{text(inner)}xf32>"
    y, b = f"tensor<{text(rows)}x{text(columns)}xf32>", f"tensor<{text(columns)}xf32>"
    sizes = ", ".join(["%N"] * (rows is None) + ["%O"] * (columns is None))
    return f"""
#x = affine_map<(d0, d1, d2) -> (d0, d2)>
#w = affine_map<(d0, d1, d2) -> {"(d2, d1)" if transposed else "(d1, d2)"}>
#y = affine_map<(d0, d1, d2) -> (d0, d1)>
#id = affine_map<(d0, d1) -> (d0, d1)>
#b = affine_map<(d0, d1) -> (d1)>
func.func @m(%x: {x}, %w: {w}, %bias: {b}) -> {y} attributes {{attn.model}} {{
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %N = tensor.dim %x, %c0 : {x}
  %O = tensor.dim %w, %c{int(transposed)} : {w}
  %e = tensor.empty({sizes}) : {y}
  %f = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}
  %p = linalg.generic {{indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}} ins(%x, %w : {x}, {w}) outs(%f : {y}) {{
  ^bb0(%a: f32, %c: f32, %acc: f32):
    %m = arith.mulf %a, %c : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  }} -> {y}
  %q = linalg.generic {{indexing_maps = [#id, #b, #id], iterator_types = ["parallel", "parallel"]}} ins(%p, %bias : {y}, {b}) outs(%e : {y}) {{
  ^bb0(%a: f32, %c: f32, %o: f32):
    %m = arith.addf %a, %c : f32
    %r = arith.maximumf %m, %zero : f32
    linalg.yield %r : f32
  }} -> {y}
  return %q : {y}
}}"""


# Scores of grouped heads: s[b,h,i,j] = sum_e q[b,h,i,e] k[b,j,e], twice as a batch.
SCORES = """
func.func @m(%q: tensor<?x?x?x?xf32>, %k: tensor<?x?x?xf32>) -> tensor<?x?x?x?xf32> attributes {attn.model} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %B = tensor.dim %q, %c0 : tensor<?x?x?x?xf32>
  %H = tensor.dim %q, %c1 : tensor<?x?x?x?xf32>
  %N = tensor.dim %q, %c2 : tensor<?x?x?x?xf32>
  %M = tensor.dim %k, %c1 : tensor<?x?x?xf32>
  %e = tensor.empty(%B, %H, %N, %M) : tensor<?x?x?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x?x?xf32>) -> tensor<?x?x?x?xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(b, h, i, j, e) -> (b, h, i, e)>, affine_map<(b, h, i, j, e) -> (b, j, e)>, affine_map<(b, h, i, j, e) -> (b, h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%q, %k : tensor<?x?x?x?xf32>, tensor<?x?x?xf32>) outs(%f : tensor<?x?x?x?xf32>) {
  ^bb0(%a: f32, %c: f32, %acc: f32):
    %m = arith.mulf %a, %c : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?x?x?xf32>
  return %p : tensor<?x?x?x?xf32>
}"""


def experts(rows, count, inner, columns):
    """relu(b[m,o] + sum_i x[n,m,i] w[m,o,i]): both operands have the dim before the columns."""
    shape = lambda *of: "".join(f"{'?' if v is None else v}x" for v in of)
    x, w = f"tensor<{shape(rows, count, inner)}f32>", f"tensor<{shape(count, columns, inner)}f32>"
    b, y = f"tensor<{shape(count, columns)}f32>", f"tensor<{shape(rows, count, columns)}f32>"
    sizes = ", ".join(["%N"] * (rows is None) + ["%M"] * (count is None) + ["%O"] * (columns is None))
    return f"""
#x = affine_map<(n, m, o, i) -> (n, m, i)>
#w = affine_map<(n, m, o, i) -> (m, o, i)>
#y = affine_map<(n, m, o, i) -> (n, m, o)>
#id = affine_map<(n, m, o) -> (n, m, o)>
#b = affine_map<(n, m, o) -> (m, o)>
func.func @m(%x: {x}, %w: {w}, %bias: {b}) -> {y} attributes {{attn.model}} {{
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %N = tensor.dim %x, %c0 : {x}
  %M = tensor.dim %w, %c0 : {w}
  %O = tensor.dim %w, %c1 : {w}
  %e = tensor.empty({sizes}) : {y}
  %f = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}
  %p = linalg.generic {{indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}} ins(%x, %w : {x}, {w}) outs(%f : {y}) {{
  ^bb0(%a: f32, %c: f32, %acc: f32):
    %m = arith.mulf %a, %c : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  }} -> {y}
  %q = linalg.generic {{indexing_maps = [#id, #b, #id], iterator_types = ["parallel", "parallel", "parallel"]}} ins(%p, %bias : {y}, {b}) outs(%e : {y}) {{
  ^bb0(%a: f32, %c: f32, %o: f32):
    %m = arith.addf %a, %c : f32
    %r = arith.maximumf %m, %zero : f32
    linalg.yield %r : f32
  }} -> {y}
  return %q : {y}
}}"""


def check(name, text, cases, reference):
    model = GuardedModel(text, f"{folder}/{name}", checks=False)
    for shapes in cases:
        inputs = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
        wanted = reference(*(a.astype(np.float64) for a in inputs))
        for out in model.both(*inputs):
            expect(out.shape == wanted.shape, f"{name} {shapes}: has the shape {out.shape}")
            error = np.max(np.abs(out - wanted), initial=0)
            expect(error < 2e-5 * max(1, np.abs(wanted).max(initial=0)), f"{name} {shapes}: error {error}")


SIZES = [(n, i, o) for n in (0, 1, 2, 7, 8, 9, 65, 80) for i in (0, 1, 5, 64) for o in (0, 1, 15, 16, 48, 49, 100)]
for transposed in (False, True):
    shapes = lambda n, i, o: ((n, i), (i, o) if transposed else (o, i), (o,))
    oracle = lambda x, w, b: np.maximum(x @ (w if transposed else w.T) + b, 0)
    check(f"dynamic{transposed}", linear(None, None, None, transposed), [shapes(*s) for s in SIZES], oracle)
    # Sums in blocks: their last one is full, or holds one term.
    check(f"long{transposed}", linear(None, None, 20, transposed), [shapes(n, i, 20) for n in (1, 9, 65, 73) for i in (1, 1023, 1024, 1025, 4096)], oracle)
    check(f"fixed{transposed}", linear(None, 3000, 20, transposed), [shapes(n, 3000, 20) for n in (9, 67)], oracle)
    check(f"static{transposed}", linear(None, 64, 100, transposed), [shapes(n, 64, 100) for n in (0, 1, 9, 17, 129)], oracle)
    check(f"tiny{transposed}", linear(3, 5, 7, transposed), [shapes(3, 5, 7)], oracle)
# Rows as wide as a register tile are read where they are.
for columns in (48, 64):
    check(f"panel{columns}", linear(None, None, columns, True), [((n, i), (i, columns), (columns,)) for n in (0, 1, 9, 65) for i in (0, 1, 5, 1025)],
          lambda x, w, b: np.maximum(x @ w + b, 0))
# A matrix beyond the second cache: few rows read it as several streams, or as it lies; 2560 is five blocks of 512.
for inner, columns in ((1536, 1000), (2560, 1000)):
    check(f"streams{inner}", linear(None, inner, columns, True), [((n, inner), (inner, columns), (columns,)) for n in (1, 9, 16, 17)],
          lambda x, w, b: np.maximum(x @ w + b, 0))
    check(f"dots{inner}", linear(None, inner, columns, False), [((n, inner), (columns, inner), (columns,)) for n in (1, 9, 16, 17)],
          lambda x, w, b: np.maximum(x @ w.T + b, 0))
check("scores", SCORES, [((b, h, i, e), (b, j, e)) for b, h, i, j, e in ((1, 1, 1, 1, 1), (2, 3, 9, 50, 17), (2, 2, 0, 5, 4), (2, 3, 70, 0, 4))],
      lambda q, k: np.einsum("bhie,bje->bhij", q, k))
oracle = lambda x, w, b: np.maximum(np.einsum("nmi,moi->nmo", x, w) + b, 0)
shapes = lambda n, m, i, o: ((n, m, i), (m, o, i), (m, o))
check("experts", experts(None, None, None, None),
      [shapes(*s) for s in ((0, 2, 3, 4), (1, 1, 1, 1), (7, 3, 5, 49), (9, 2, 64, 15), (65, 3, 5, 100), (17, 2, 2049, 20), (9, 2, 0, 16), (9, 0, 4, 16))], oracle)
check("experts-static", experts(67, 3, 3000, 20), [shapes(67, 3, 3000, 20)], oracle)
finish()
