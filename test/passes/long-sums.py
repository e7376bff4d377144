# REQUIRES: heed-opt
# RUN: %python %s %t
"""Long sums of f32 are sums of blocks: equal terms of 1/3 added one after the other would drift by far more."""
import sys

import numpy as np

from guarded import GuardedModel
from runs import expect, finish

folder = sys.argv[1]
SUM = """
#x = affine_map<({dims}) -> ({x})>
#y = affine_map<({dims}) -> ({y})>
func.func @m(%x: tensor<?x?xf32>) -> tensor<?xf32> attributes {{attn.model}} {{
  %zero = arith.constant 0.0 : f32
  %c = arith.constant {axis} : index
  %N = tensor.dim %x, %c : tensor<?x?xf32>
  %e = tensor.empty(%N) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {{indexing_maps = [#x, #y], iterator_types = ["parallel", "reduction"]}} ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) {{
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  }} -> tensor<?xf32>
  return %s : tensor<?xf32>
}}"""
PRODUCT = """
#k = affine_map<(e, f, n) -> (n, e)>
#v = affine_map<(e, f, n) -> (n, f)>
#o = affine_map<(e, f, n) -> (e, f)>
func.func @m(%k: tensor<?x?xf32>, %v: tensor<?x?xf32>) -> tensor<?x?xf32> attributes {attn.model} {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %E = tensor.dim %k, %c1 : tensor<?x?xf32>
  %F = tensor.dim %v, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%E, %F) : tensor<?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = linalg.generic {indexing_maps = [#k, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]} ins(%k, %v : tensor<?x?xf32>, tensor<?x?xf32>) outs(%f : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %s : tensor<?x?xf32>
}"""
third = np.float32(1 / 3)
LONG = 1 << 19


def check(name, found, wanted):
    error = np.abs(found / wanted - 1).max()
    expect(error <= 1e-5, f"{name}: relative error {error:.1e}")


# Added in turn, the test's own terms drift: it can fail. (What NumPy adds in turn is cumsum.)
expect(abs(np.cumsum(np.full(LONG, third))[-1] / (LONG * float(third)) - 1) > 1e-4, "the terms do not drift")
model = GuardedModel(SUM.format(dims="i, n", x="i, n", y="i", axis=0), f"{folder}/rows", checks=False)
check("rows", model(np.full((2, LONG + 3), third)), (LONG + 3) * float(third))
check("a short row", model(np.full((2, 5), third)), 5 * float(third))
model = GuardedModel(SUM.format(dims="i, n", x="n, i", y="i", axis=1), f"{folder}/columns", checks=False)
check("columns", model(np.full((LONG + 3, 2), third)), (LONG + 3) * float(third))
model = GuardedModel(PRODUCT, f"{folder}/product", checks=False)
check("product", model(np.full((LONG + 3, 5), third), np.ones((LONG + 3, 3), np.float32)), (LONG + 3) * float(third))
finish()
