//===- Passes.td - every pass of ours, one entry each --------------------------------------===//
// An entry's description holds the IR before and after; its lit test has the same case. Keep DESIGN.md's order.

#ifndef HEED_PASSES_PASSES_TD
#define HEED_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnFuseElementwise : Pass<"attn-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "Elementwise producers are computed where they are read";
  let description = [{
    An elementwise `linalg.generic` is inlined into the ops that read it, as an operand or through `tensor.extract` at
    any coordinates, so that between two contractions stands one elementwise body, and head splits, casts and
    conditions leave no tensor behind. Stored, with a remark: what is read many times or by several ops and costs more than a load,
    what stands outside of the reader's loop, and tables in f64. A table over i and j that depends on j - i alone
    becomes a table over the offset.

    ```mlir
    #id = affine_map<(i) -> (i)>
    func.func @f(%x: tensor<8xf32>, %c: f32) -> tensor<8xf32> {
      %e = tensor.empty() : tensor<8xf32>
      %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%v: f32, %o: f32):
        %m = arith.mulf %v, %c : f32
        linalg.yield %m : f32
      } -> tensor<8xf32>
      %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%v: f32, %o: f32):
        %t = math.tanh %v : f32
        linalg.yield %t : f32
      } -> tensor<8xf32>
      return %b : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    #id = affine_map<(d0) -> (d0)>
    func.func @f(%x: tensor<8xf32>, %c: f32) -> tensor<8xf32> {
      %e = tensor.empty() : tensor<8xf32>
      %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%v: f32, %o: f32):
        %m = arith.mulf %v, %c : f32
        %t = math.tanh %m : f32
        linalg.yield %t : f32
      } -> tensor<8xf32>
      return %b : tensor<8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def AttnRaiseAttention : Pass<"attn-raise-attention", "::mlir::func::FuncOp"> {
  let summary = "Contraction, score, normaliser, contraction to attn.attention";
  let description = [{
    Finds, by meaning and not by spelling, a sum over keys of a weight times a value, where the weight is a softmax of
    scores, or any other function of a contraction of queries with keys. A score of -inf (a select, an added mask)
    becomes `where`; softmax may be written out with max, exp and sum, its division may stand after the second
    product; a term beside the sum is the sink; sigmoid, relu and other weights without a row sum are raised too; what multiplies a
    weight after the normaliser is `weight`. What varies over pairs is taken apart, what varies over one side stays a
    tensor. A clipped offset becomes a table over offsets. What only transposes or narrows the whole output (merged heads)
    becomes `result_map`. A quotient that is written out keeps its NaN in rows without a key of weight (`empty`). Left alone, with a remark: weights that are read elsewhere
    too, heads that mix, a chain of plain products (attn-reorder-products).

    ```mlir
    #q = affine_map<(i, j, e) -> (i, e)>
    #k = affine_map<(i, j, e) -> (j, e)>
    #s = affine_map<(i, j, e) -> (i, j)>
    #p = affine_map<(i, f, j) -> (i, j)>
    #v = affine_map<(i, f, j) -> (j, f)>
    #o = affine_map<(i, f, j) -> (i, f)>
    func.func @f(%q: tensor<6x4xf32>, %k: tensor<8x4xf32>, %v: tensor<8x5xf32>, %zs: tensor<6x8xf32>,
             %zo: tensor<6x5xf32>) -> tensor<6x5xf32> {
      %zero = arith.constant 0.0 : f32
      %fs = linalg.fill ins(%zero : f32) outs(%zs : tensor<6x8xf32>) -> tensor<6x8xf32>
      %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%q, %k : tensor<6x4xf32>, tensor<8x4xf32>) outs(%fs : tensor<6x8xf32>) {
      ^bb0(%a: f32, %b: f32, %sum: f32):
        %m = arith.mulf %a, %b : f32
        %r = arith.addf %sum, %m : f32
        linalg.yield %r : f32
      } -> tensor<6x8xf32>
      %p, %live = attn.softmax %s axes([1]) where (%i, %j) {
        %c = arith.cmpi sle, %j, %i : index
        attn.yield %c : i1
      } : tensor<6x8xf32>, tensor<6x8xi1>
      %fo = linalg.fill ins(%zero : f32) outs(%zo : tensor<6x5xf32>) -> tensor<6x5xf32>
      %o = linalg.generic {indexing_maps = [#p, #p, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%p, %live, %v : tensor<6x8xf32>, tensor<6x8xi1>, tensor<8x5xf32>) outs(%fo : tensor<6x5xf32>) {
      ^bb0(%w: f32, %l: i1, %y: f32, %sum: f32):
        %m = arith.mulf %w, %y : f32
        %t = arith.select %l, %m, %zero : f32
        %r = arith.addf %sum, %t : f32
        linalg.yield %r : f32
      } -> tensor<6x5xf32>
      return %o : tensor<6x5xf32>
    }
    ```
    becomes
    ```mlir
    #q = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
    #k = affine_map<(d0, d1, d2, d3) -> (d1, d2)>
    #v = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
    func.func @f(%q: tensor<6x4xf32>, %k: tensor<8x4xf32>, %v: tensor<8x5xf32>, %zs: tensor<6x8xf32>,
             %zo: tensor<6x5xf32>) -> tensor<6x5xf32> {
      %c6 = arith.constant 6 : index
      %c8 = arith.constant 8 : index
      %c4 = arith.constant 4 : index
      %c5 = arith.constant 5 : index
      %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%c6, %c8, %c4, %c5)
        term(%q, %k : tensor<6x4xf32>, tensor<8x4xf32>) maps [#q, #k]
        value(%v : tensor<8x5xf32>) maps [#v]
        score (%i, %j : index, %t : f32) {
          attn.yield %t : f32
        }
        where (%i, %j) {
          %c = arith.cmpi sle, %j, %i : index
          attn.yield %c : i1
        }
        normalise(exp divide stabilise) : tensor<6x5xf32>
      return %o : tensor<6x5xf32>
    }
    ```
  }];
  let dependentDialects = ["::heed::attn::AttnDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def AttnReorderProducts : Pass<"attn-reorder-products", "::mlir::func::FuncOp"> {
  let summary = "Chains of contractions in their cheapest order";
  let description = [{
    A sum over products one of which is itself a contraction may be summed in another order: (Q K^T) V costs N M (E + F),
    Q (K^T V) costs (N + M) E F. Factors that do not depend on what is summed (a normaliser, scales of a
    query) move out of the sums. Known sizes decide here; symbolic ones by `scf.if` on the host, in each call. A chain of four of known
    sizes is reordered step by step. Left alone, with a remark: a sum with a condition over pairs (causal), a sum over more than three factors at
    once. Products with parameters alone keep their order.

    ```mlir
    #q = affine_map<(i, j, e) -> (i, e)>
    #k = affine_map<(i, j, e) -> (j, e)>
    #a = affine_map<(i, j, e) -> (i, j)>
    #p = affine_map<(i, f, j) -> (i, j)>
    #v = affine_map<(i, f, j) -> (j, f)>
    #o = affine_map<(i, f, j) -> (i, f)>
    func.func @f(%q: tensor<512x4xf32>, %k: tensor<512x4xf32>, %v: tensor<512x4xf32>) -> tensor<512x4xf32> {
      %zero = arith.constant 0.0 : f32
      %ea = tensor.empty() : tensor<512x512xf32>
      %fa = linalg.fill ins(%zero : f32) outs(%ea : tensor<512x512xf32>) -> tensor<512x512xf32>
      %a = linalg.generic {indexing_maps = [#q, #k, #a], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%q, %k : tensor<512x4xf32>, tensor<512x4xf32>) outs(%fa : tensor<512x512xf32>) {
      ^bb0(%x: f32, %y: f32, %sum: f32):
        %m = arith.mulf %x, %y : f32
        %r = arith.addf %sum, %m : f32
        linalg.yield %r : f32
      } -> tensor<512x512xf32>
      %eo = tensor.empty() : tensor<512x4xf32>
      %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<512x4xf32>) -> tensor<512x4xf32>
      %o = linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %v : tensor<512x512xf32>, tensor<512x4xf32>) outs(%fo : tensor<512x4xf32>) {
      ^bb0(%x: f32, %y: f32, %sum: f32):
        %m = arith.mulf %x, %y : f32
        %r = arith.addf %sum, %m : f32
        linalg.yield %r : f32
      } -> tensor<512x4xf32>
      return %o : tensor<512x4xf32>
    }
    ```
    becomes
    ```mlir
    #map = affine_map<(d0, d1, d2) -> (d2, d1)>
    #map1 = affine_map<(d0, d1, d2) -> (d2, d0)>
    #map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
    #map3 = affine_map<(d0, d1, d2) -> (d0, d2)>
    func.func @f(%q: tensor<512x4xf32>, %k: tensor<512x4xf32>, %v: tensor<512x4xf32>) -> tensor<512x4xf32> {
      %zero = arith.constant 0.000000e+00 : f32
      %ekv = tensor.empty() : tensor<4x4xf32>
      %fkv = linalg.fill ins(%zero : f32) outs(%ekv : tensor<4x4xf32>) -> tensor<4x4xf32>
      %kv = linalg.generic {indexing_maps = [#map, #map1, #map2],
                            iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%v, %k : tensor<512x4xf32>, tensor<512x4xf32>) outs(%fkv : tensor<4x4xf32>) {
      ^bb0(%x: f32, %y: f32, %sum: f32):
        %m = arith.mulf %x, %y : f32
        %r = arith.addf %sum, %m : f32
        linalg.yield %r : f32
      } -> tensor<4x4xf32>
      %eo = tensor.empty() : tensor<512x4xf32>
      %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<512x4xf32>) -> tensor<512x4xf32>
      %o = linalg.generic {indexing_maps = [#map3, #map, #map2], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%q, %kv : tensor<512x4xf32>, tensor<4x4xf32>) outs(%fo : tensor<512x4xf32>) {
      ^bb0(%x: f32, %y: f32, %sum: f32):
        %m = arith.mulf %x, %y : f32
        %r = arith.addf %sum, %m : f32
        linalg.yield %r : f32
      } -> tensor<512x4xf32>
      return %o : tensor<512x4xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def AttnSolveMasks : Pass<"attn-solve-masks", "::mlir::func::FuncOp"> {
  let summary = "Which keys each tile of queries sees";
  let description = [{
    For a tile of queries i0..i1 the `where` of an attention is solved for the key: outside of `reach` no query of the
    tile sees a key, in `full` every query sees every key. Both are unions of pieces: a range of keys, and perhaps a
    condition on the block of keys j0..j1. Comparisons of integers that separate into a part of i and a part of j become
    ranges, exactly (shifts, products, floor divisions, min, max, abs of them; two bounds of j - i that leave nothing
    make an empty piece); `and` intersects, `or` unites. What depends on data is known by its least and greatest value over
    a tile, or over a block (`tile`, `block` are their indices): a part of i alone bounds ranges, anything else is
    evaluated on intervals, to: nowhere, somewhere, everywhere. That is right for any data, and exact for lengths,
    spans, flags, sorted documents. What is left, is evaluated per element: it reaches all keys and fills none. The pieces
    are attached as text; schedules ask `solveMask` (MaskBounds.h) for them as expressions.

    ```mlir
    #q = affine_map<(i, j, e, f) -> (i, e)>
    #k = affine_map<(i, j, e, f) -> (j, e)>
    #v = affine_map<(i, j, e, f) -> (j, f)>
    func.func @f(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %N: index, %M: index, %E: index, %F: index)
        -> tensor<?x8xf32> {
      %w = arith.constant 64 : index
      %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%N, %M, %E, %F)
          term(%q, %k : tensor<?x8xf32>, tensor<?x8xf32>) maps [#q, #k] value(%k : tensor<?x8xf32>) maps [#v]
          score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
          where (%i, %j) {
            %a = arith.cmpi sle, %j, %i : index
            %d = arith.subi %i, %j : index
            %b = arith.cmpi slt, %d, %w : index
            %c = arith.andi %a, %b : i1
            attn.yield %c : i1
          }
          normalise(exp divide stabilise) : tensor<?x8xf32>
      return %o : tensor<?x8xf32>
    }
    ```
    becomes
    ```mlir
    #q = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
    #k = affine_map<(d0, d1, d2, d3) -> (d1, d2)>
    #v = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
    func.func @f(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %N: index, %M: index, %E: index, %F: index)
        -> tensor<?x8xf32> {
      %w = arith.constant 64 : index
      %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%N, %M, %E, %F)
        term(%q, %k : tensor<?x8xf32>, tensor<?x8xf32>) maps [#q, #k]
        value(%k : tensor<?x8xf32>) maps [#v]
        score (%i, %j : index, %t : f32) {
          attn.yield %t : f32
        }
        where (%i, %j) {
          %a = arith.cmpi sle, %j, %i : index
          %d = arith.subi %i, %j : index
          %b = arith.cmpi slt, %d, %w : index
          %c = arith.andi %a, %b : i1
          attn.yield %c : i1
        }
        normalise(exp divide stabilise) {attn.mask = {exact = true, full = [["max(0, (i1 - 63))", "min(M, (i0 + 1))"]],
                                                    reach = [["max(0, (i0 - 63))", "min(M, (i1 + 1))"]]}} : tensor<?x8xf32>
      return %o : tensor<?x8xf32>
    }
    ```
  }];
}

def AttnChooseAlgorithm : Pass<"attn-choose-algorithm"> {
  let summary = "How each attention is computed";
  let description = [{
    Sets `attn.algorithm` on every `attn.attention` that has none: "streaming" (one pass over the keys, nothing of
    size N x M is stored) where the schedule family can do it, else "row block" (its definition, one tile of queries
    after the other, the scores of a tile in scratch), else "materialised" (its definition, scores stored).

    Operations that no attention op can say, with a row-wise one between scores and values (heads that mix, norms of
    scores, softmax renormalised; or a softmax whose weights are a result), get `attn.row_block = number` where they
    share loops over queries and are read by each other alone: attn-form-kernels makes each number one kernel.

    ```mlir
    #q = affine_map<(i, j, e, f) -> (i, e)>
    #k = affine_map<(i, j, e, f) -> (j, e)>
    #v = affine_map<(i, j, e, f) -> (j, f)>
    func.func @f(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %N: index, %M: index, %E: index, %F: index)
        -> tensor<?x8xf32> {
      %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%N, %M, %E, %F)
          term(%q, %k : tensor<?x8xf32>, tensor<?x8xf32>) maps [#q, #k] value(%k : tensor<?x8xf32>) maps [#v]
          score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
          normalise(exp divide stabilise) : tensor<?x8xf32>
      return %o : tensor<?x8xf32>
    }
    ```
    becomes
    ```mlir
    #q = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
    #k = affine_map<(d0, d1, d2, d3) -> (d1, d2)>
    #v = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
    func.func @f(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %N: index, %M: index, %E: index, %F: index)
        -> tensor<?x8xf32> {
      %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%N, %M, %E, %F)
        term(%q, %k : tensor<?x8xf32>, tensor<?x8xf32>) maps [#q, #k]
        value(%k : tensor<?x8xf32>) maps [#v]
        score (%i, %j : index, %t : f32) {
          attn.yield %t : f32
        }
        normalise(exp divide stabilise) {attn.algorithm = "streaming"} : tensor<?x8xf32>
      return %o : tensor<?x8xf32>
    }
    ```
  }];
  let dependentDialects = ["::heed::attn::AttnDialect"];
}

def AttnFormKernels : Pass<"attn-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Outlines the tensor mathematics of a model as kernels";
  let description = [{
    What one kernel can compute without storing what is between is one function with `attn.kernel`: elementwise
    producers, the epilogue of a contraction, reductions over the same rows. Equal kernels are one function. What
    stays in the model is its host code (docs/ir.md, section 3). The predicate of a softmax is recomputed where
    its `live` is read.

    ```mlir
    #id = affine_map<(i) -> (i)>
    func.func @scale(%x: tensor<?xf32>, %c: f32, %n: index) -> tensor<?xf32> attributes {attn.model} {
      %e = tensor.empty(%n) : tensor<?xf32>
      %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
      ^bb0(%v: f32, %o: f32):
        %m = arith.mulf %v, %c : f32
        linalg.yield %m : f32
      } -> tensor<?xf32>
      return %y : tensor<?xf32>
    }
    ```
    becomes
    ```mlir
    #id = affine_map<(d0) -> (d0)>
    func.func @scale(%arg0: tensor<?xf32>, %arg1: f32, %arg2: index) -> tensor<?xf32> attributes {attn.model} {
      %y = call @scale_elementwise(%arg0, %arg2, %arg1) : (tensor<?xf32>, index, f32) -> tensor<?xf32>
      return %y : tensor<?xf32>
    }
    func.func private @scale_elementwise(%arg0: tensor<?xf32>, %arg1: index, %arg2: f32) -> tensor<?xf32>
        attributes {attn.kernel, attn.kind = "elementwise"} {
      %y = tensor.empty(%arg1) : tensor<?xf32>
      %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%arg0 : tensor<?xf32>) outs(%y : tensor<?xf32>) {
      ^bb0(%in: f32, %out: f32):
        %2 = arith.mulf %in, %arg2 : f32
        linalg.yield %2 : f32
      } -> tensor<?xf32>
      return %1 : tensor<?xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def AttnRelaxMath : Pass<"attn-relax-math", "::mlir::ModuleOp"> {
  let summary = "Lets the arithmetic of kernels leave the error bounds";
  let description = [{
    Only with `--fast-math`. Sums, differences, products and quotients that the model states may be reordered and
    contracted; comparisons, f64 tables and what schedules bring with them stay as they are.

    ```mlir
    func.func private @square(%x: f32) -> f32 attributes {attn.kernel} {
      %y = arith.mulf %x, %x : f32
      return %y : f32
    }
    ```
    becomes
    ```mlir
    func.func private @square(%x: f32) -> f32 attributes {attn.kernel} {
      %y = arith.mulf %x, %x fastmath<reassoc,contract> : f32
      return %y : f32
    }
    ```
  }];
}

def AttnHoistWeights : Pass<"attn-hoist-weights", "::mlir::ModuleOp"> {
  let summary = "What depends on parameters alone is computed once, when the model is opened";
  let description = [{
    A tensor that is the same in every call (computed from parameters, constants and variables of loops with constant
    bounds alone) moves to the function with `attn.init`, which keeps it; the model reads what was kept. In a loop over
    layers there is one instance a layer. Runs on tensor mathematics, and again on calls of pipelines, where it finds the packing of weights. Left alone,
    with a remark: what needs a size that is known in a call only, what depends on an input, and elementwise ops that only spread
    their inputs over a larger tensor.

    ```mlir
    #m = affine_map<(i, j) -> (i, j)>
    func.func @m(%x: tensor<?x4xf32>) -> tensor<?x4xf32> attributes {attn.model} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c6 = arith.constant 6 : index
      %n = tensor.dim %x, %c0 : tensor<?x4xf32>
      %y = scf.for %l = %c0 to %c6 step %c1 iter_args(%h = %x) -> tensor<?x4xf32> {
        %w = attn.param "layer.{0}.w" [%l] : tensor<4x4xf32>
        %e = tensor.empty() : tensor<4x4xf32>
        %t = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
            ins(%w : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
        ^bb0(%a: f32, %b: f32):
          %r = math.exp %a : f32
          linalg.yield %r : f32
        } -> tensor<4x4xf32>
        %s = func.call @k(%h, %t) : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
        scf.yield %s : tensor<?x4xf32>
      }
      return %y : tensor<?x4xf32>
    }
    func.func private @k(%h: tensor<?x4xf32>, %t: tensor<4x4xf32>) -> tensor<?x4xf32>
    ```
    becomes
    ```mlir
    #map = affine_map<(d0, d1) -> (d0, d1)>
    module {
      func.func @m(%arg0: tensor<?x4xf32>) -> tensor<?x4xf32> attributes {attn.model} {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c6 = arith.constant 6 : index
        %0 = scf.for %arg1 = %c0 to %c6 step %c1 iter_args(%arg2 = %arg0) -> (tensor<?x4xf32>) {
          %1 = attn.kept %arg1 : tensor<4x4xf32>
          %2 = func.call @k(%arg2, %1) : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
          scf.yield %2 : tensor<?x4xf32>
        }
        return %0 : tensor<?x4xf32>
      }
      func.func private @k(tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
      func.func private @init() attributes {attn.init, attn.slots = 6 : i64} {
        %c0 = arith.constant 0 : index
        %c6 = arith.constant 6 : index
        %c1 = arith.constant 1 : index
        scf.for %arg0 = %c0 to %c6 step %c1 {
          %0 = attn.param "layer.{0}.w"[%arg0] : tensor<4x4xf32>
          %1 = tensor.empty() : tensor<4x4xf32>
          %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<4x4xf32>) outs(%1 : tensor<4x4xf32>) {
          ^bb0(%in: f32, %out: f32):
            %3 = math.exp %in : f32
            linalg.yield %3 : f32
          } -> tensor<4x4xf32>
          attn.keep %2 in %arg0 : tensor<4x4xf32>
        }
        return
      }
    }
    ```
  }];
  let dependentDialects = ["::heed::attn::AttnDialect", "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
                           "::mlir::scf::SCFDialect"];
}

def AttnToHalide : Pass<"attn-to-halide", "::mlir::ModuleOp"> {
  let summary = "Kernels become Halide pipelines with a schedule";
  let description = [{
    Every function with `attn.kernel` becomes a `halide.pipeline`, and its calls `halide.call` with destinations
    (docs/ir.md, section 4). The algorithm is translated first; then the schedule family that fits appends its ops,
    from the description of the target.

    ```mlir
    #id = affine_map<(i) -> (i)>
    module attributes {halide.target = {name = "x86-64-v3", vector_bits = 256 : i64, vector_registers = 16 : i64,
                                         l1 = 32768 : i64, l2 = 1048576 : i64, cores = 2 : i64}} {
      func.func @scale(%x: tensor<?xf32>, %c: f32, %n: index) -> tensor<?xf32> attributes {attn.model} {
        %y = call @scale_elementwise(%x, %c, %n) : (tensor<?xf32>, f32, index) -> tensor<?xf32>
        return %y : tensor<?xf32>
      }
      func.func private @scale_elementwise(%x: tensor<?xf32>, %c: f32, %n: index) -> tensor<?xf32>
          attributes {attn.kernel} {
        %e = tensor.empty(%n) : tensor<?xf32>
        %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
            ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
        ^bb0(%v: f32, %o: f32):
          %m = arith.mulf %v, %c : f32
          linalg.yield %m : f32
        } -> tensor<?xf32>
        return %y : tensor<?xf32>
      }
    }
    ```
    becomes
    ```mlir
    #map = affine_map<()[s0, s1] -> (s0 * 4 + s1 * 4)>
    #map1 = affine_map<()[s0, s1] -> (s1)>
    module attributes {halide.target = {cores = 2 : i64, l1 = 32768 : i64, l2 = 1048576 : i64, name = "x86-64-v3",
                                         vector_bits = 256 : i64, vector_registers = 16 : i64}} {
      func.func @scale(%arg0: tensor<?xf32>, %arg1: f32, %arg2: index) -> tensor<?xf32> attributes {attn.model} {
        %0 = tensor.empty(%arg2) : tensor<?xf32>
        %1 = halide.call @scale_elementwise(%arg0, %arg1, %arg2 : tensor<?xf32>, f32, index)
            outs(%0 : tensor<?xf32>) -> tensor<?xf32>
        return %1 : tensor<?xf32>
      }
      halide.pipeline @scale_elementwise attributes {attn.cost = {axes = array<i64: 0, -1>, bytes = #map, flops = #map1, names = ["a0", "a2"]}} {
        %c0_i32 = arith.constant 0 : i32
        %a0 = halide.buffer "a0" ("d0") : f32
        halide.set_bounds %a0, 0 from %c0_i32
        %a1 = halide.param "a1" : f32
        %a2 = halide.param "a2" : i32
        %f0 = halide.func "f0" (%d0 = "d0") : f32 {
          %0 = halide.read %a0[%d0] : f32
          %1 = arith.mulf %0, %a1 : f32
          halide.yield %1 : f32
        }
        halide.output %f0
        halide.set_bounds %f0, 0 from %c0_i32
        halide.split %f0, "d0" into ("d0", "d0v") by 8 tail GuardWithIf
        halide.vectorize %f0, "d0v"
      }
    }
    ```
  }];
  let dependentDialects = ["::heed::halide::HalideDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def AttnPlanMemory : Pass<"attn-plan-memory", "::mlir::func::FuncOp"> {
  let summary = "One arena from the lifetimes of the host's buffers";
  let description = [{
    Runs on memrefs, after bufferisation and before deallocation. Buffers whose lifetimes do not meet share a slot;
    the slots lie one after the other in one allocation, aligned to 64 bytes. Sizes may be symbolic: a slot is as
    large as its largest buffer. A buffer in a branch of an `scf.if` counts in calls that take the branch. Left alone: a
    buffer that leaves its block (a result, or carried to the next iteration), or whose size or branch is not known
    where the arena is made.

    ```mlir
    func.func @f(%x: memref<20xf32>, %y: memref<20xf32>) {
      %a = memref.alloc() : memref<20xf32>
      memref.copy %x, %a : memref<20xf32> to memref<20xf32>
      %b = memref.alloc() : memref<20xf32>
      memref.copy %a, %b : memref<20xf32> to memref<20xf32>
      %c = memref.alloc() : memref<20xf32>
      memref.copy %b, %c : memref<20xf32> to memref<20xf32>
      memref.copy %c, %y : memref<20xf32> to memref<20xf32>
      return
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: memref<20xf32>, %y: memref<20xf32>) {
      %c0 = arith.constant 0 : index
      %c128 = arith.constant 128 : index
      %arena = memref.alloc() {alignment = 64 : i64} : memref<256xi8>
      %a = memref.view %arena[%c0][] : memref<256xi8> to memref<20xf32>
      memref.copy %x, %a : memref<20xf32> to memref<20xf32>
      %b = memref.view %arena[%c128][] : memref<256xi8> to memref<20xf32>
      memref.copy %a, %b : memref<20xf32> to memref<20xf32>
      memref.copy %b, %a : memref<20xf32> to memref<20xf32>
      memref.copy %a, %y : memref<20xf32> to memref<20xf32>
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

def AttnFormEntries : Pass<"attn-form-entries", "::mlir::ModuleOp"> {
  let summary = "Models to functions that write their results where the caller says";
  let description = [{
    A model (`attn.model`) gets one memref argument per result (`attn.result`) and returns nothing. Beside it stands
    `@<model>.shapes`, which takes the same arguments, makes the same checks of sizes and returns the extents of all
    results; it computes no element. Runs on tensors, right before bufferisation; inputs are marked as not writable.

    ```mlir
    func.func @double(%x: tensor<?xf32>) -> (tensor<?xf32> {attn.name = "y"}) attributes {attn.model} {
      %c0 = arith.constant 0 : index
      %n = tensor.dim %x, %c0 : tensor<?xf32>
      %e = tensor.empty(%n) : tensor<?xf32>
      %y = linalg.add ins(%x, %x : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
      return %y : tensor<?xf32>
    }
    ```
    becomes
    ```mlir
    func.func @double(%x: tensor<?xf32> {bufferization.writable = false},
                      %out: memref<?xf32> {attn.name = "y", attn.result}) attributes {attn.model} {
      %c0 = arith.constant 0 : index
      %n = tensor.dim %x, %c0 : tensor<?xf32>
      %e = tensor.empty(%n) : tensor<?xf32>
      %y = linalg.add ins(%x, %x : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
      bufferization.materialize_in_destination %y in restrict writable %out : (tensor<?xf32>, memref<?xf32>) -> ()
      return
    }
    func.func private @double.shapes(%x: tensor<?xf32> {bufferization.writable = false}) -> index
        attributes {attn.shapes_of = @double} {
      %c0 = arith.constant 0 : index
      %n = tensor.dim %x, %c0 : tensor<?xf32>
      return %n : index
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::tensor::TensorDialect"];
}

def AttnLowerHost : Pass<"attn-lower-host", "::mlir::ModuleOp"> {
  let summary = "What the host asks of the runtime becomes calls of its C functions";
  let description = [{
    On memrefs. Every function gets the model handle as its first argument; `attn.param`, `attn.require`,
    `attn.require_in_range`, `memref.alloc`, `memref.dealloc` and `halide.call` become calls into runtime/host.h.
    Each model gets two C functions that unpack `heed_buffer`s, and the module gets `attn.description`: entries,
    parameters and kernels, from which code generation makes the model's constant. Kernels get the model's prefix.

    ```mlir
    func.func @f(%y: memref<4xf32> {attn.name = "y", attn.result}) attributes {attn.model} {
      %w = attn.param "w" [] : memref<4xf32>
      memref.copy %w, %y : memref<4xf32> to memref<4xf32>
      return
    }
    func.func private @f.shapes() -> index {
      %n = arith.constant 4 : index
      return %n : index
    }
    ```
    becomes
    ```mlir
    ...
      func.func private @f(%model: !llvm.ptr, %y: memref<4xf32>) attributes {attn.model} {
        ...
        %p = llvm.call @heed_host_param(%model, %number, %indices) : (!llvm.ptr, i32, !llvm.ptr) -> !llvm.ptr
        ...
        memref.copy %w, %y : memref<4xf32> to memref<4xf32>
        return
      }
      func.func private @f.shapes(%model: !llvm.ptr) -> index {
    ...
      func.func @heed.f.run(%model: !llvm.ptr, %inputs: !llvm.ptr, %outputs: !llvm.ptr) -> i32 {
        ...
        call @f(%model, %y) : (!llvm.ptr, memref<4xf32>) -> ()
        return %ok : i32
      }
      func.func @heed.f.ask(%model: !llvm.ptr, %inputs: !llvm.ptr, %outputs: !llvm.ptr) -> i32 {
    ...
    ```
  }];
  let options = [Option<"prefix", "prefix", "std::string", "\"heed\"", "what the model's symbols begin with">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect"];
}

//===--- contracts between stations: docs/ir.md ------------------------------------------------------------===//

class AttnVerify<string station, int section, string what, string refused>
    : Pass<"attn-verify-" # station, "::mlir::ModuleOp"> {
  let summary = "Checks " # what;
  let description = [{
    Fails at the first op that breaks a rule of section }] # section # [{ of docs/ir.md and names the rule.
    heedc runs it between its stations; it changes nothing. It refuses, say,
}] # refused;
}
def AttnVerifyFrontEnd : AttnVerify<"front-end", 1, "the IR that a front end makes", [{
    ```mlir
    func.func @no_model() {
      return
    }
    ```
    with
    ```text
    'func.func' op expected a public func.func with a body and attn.model (front.c1)
    ```
}]>;
def AttnVerifyAttention : AttnVerify<"attention", 2, "attentions before kernels are formed", [{
    ```mlir
    #q = affine_map<(i, j, e, f) -> (i, e)>
    #k = affine_map<(i, j, e, f) -> (j, e)>
    #v = affine_map<(i, j, e, f) -> (j, f)>
    func.func @undecided(%q: tensor<4x4xf32>, %n: index) -> tensor<4x4xf32> {
      %o = attn.attention dims(query = 1, key = 1, contract = 1, value = 1) sizes(%n, %n, %n, %n)
          term(%q, %q : tensor<4x4xf32>, tensor<4x4xf32>) maps [#q, #k] value(%q : tensor<4x4xf32>) maps [#v]
          score (%i, %j : index, %t : f32) { attn.yield %t : f32 } normalise(exp divide stabilise) : tensor<4x4xf32>
      return %o : tensor<4x4xf32>
    }
    ```
    with
    ```text
    'attn.attention' op has no attn.algorithm (attention-ir.c1)
    ```
}]>;
def AttnVerifyKernels : AttnVerify<"kernels", 3, "kernels and the host that calls them", [{
    ```mlir
    func.func private @kernel() -> tensor<4xf32> attributes {attn.kernel} {
      %w = attn.param "w" : tensor<4xf32>
      return %w : tensor<4xf32>
    }
    ```
    with
    ```text
    'attn.param' op stands in a kernel, where only host code may use it (kernels.c2)
    ```
}]>;
def AttnVerifyHalide : AttnVerify<"halide", 4, "pipelines and the host that calls them", [{
    ```mlir
    halide.pipeline @unused {
      %f = halide.func "f" (%i = "i") : i32 { halide.yield %i : i32 }
      halide.output %f
    }
    ```
    with
    ```text
    'halide.pipeline' op is called nowhere (halide-ir.c1)
    ```
}]>;
def AttnVerifyHost : AttnVerify<"host", 5, "host code before it becomes LLVM", [{
    ```mlir
    func.func @foreign(%v: vector<4xf32>) {
      %s = vector.extract %v[0] : f32 from vector<4xf32>
      return
    }
    ```
    with
    ```text
    'vector.extract' op has no lowering to LLVM in host code (host.c2)
    ```
}]>;

#endif
