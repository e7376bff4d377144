//===- PlanPasses.td - how an attention is computed: dims, masks, algorithm ----------===//
#ifndef HEED_PASSES_PLANPASSES_TD
#define HEED_PASSES_PLANPASSES_TD

include "mlir/Pass/PassBase.td"

def AttnJoinDims : Pass<"attn-join-dims", "::mlir::func::FuncOp"> {
  let summary = "Several query, key or value dims of an attention as one";
  let description = [{
    An attention with queries (y, x) and keys (u, v), as over images, windows and volumes, is one with a query dim
    i = y * X + x and a key dim j = u * V + v, which streams and whose mask can be solved. Where a tensor holds the dims
    side by side and no longer than they are, it is read by another view; keys and values that hold them apart are copied
    once; any other operand takes quotients and remainders in its map. So do the indices that `score`, `where` and
    `weight` take. Results are views, or copied where their axes are apart.

    A score term that reads an offset of one query and one key dim, of which there is none any more, is read in the
    `score`. A term that sums over features and depends on few of the dims, `sum(e) q[y,x,e] * r[y-u,e]`, is computed
    before: for each query one number a row of keys. Left alone are attentions that could not stream then.

    ```mlir
    #q = affine_map<(y, x, u, v, e, f) -> (y, x, e)>
    #k = affine_map<(y, x, u, v, e, f) -> (u, v, e)>
    #v = affine_map<(y, x, u, v, e, f) -> (u, v, f)>
    func.func @f(%q: tensor<?x8x4xf32>, %k: tensor<?x8x4xf32>, %N: index) -> tensor<?x8x4xf32> {
      %X = arith.constant 8 : index
      %E = arith.constant 4 : index
      %o = attn.attention dims(batch = 0, query = 2, key = 2, contract = 1, value = 1) sizes(%N, %X, %N, %X, %E, %E)
          term(%q, %k : tensor<?x8x4xf32>, tensor<?x8x4xf32>) maps [#q, #k] value(%k : tensor<?x8x4xf32>) maps [#v]
          score (%y, %x, %u, %v : index, %t : f32) { attn.yield %t : f32 }
          where (%y, %x, %u, %v) {
            %c = arith.cmpi sle, %u, %y : index
            attn.yield %c : i1
          }
          normalise(exp divide stabilise) : tensor<?x8x4xf32>
      return %o : tensor<?x8x4xf32>
    }
    ```
    becomes
    ```mlir
    #q = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
    #k = affine_map<(d0, d1, d2, d3) -> (d1, d2)>
    #v = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
    func.func @f(%q: tensor<?x8x4xf32>, %k: tensor<?x8x4xf32>, %N: index) -> tensor<?x8x4xf32> {
      %X = arith.constant 8 : index
      %E = arith.constant 4 : index
      %I = arith.muli %N, %X : index
      %qi = tensor.collapse_shape %q [[0, 1], [2]] : tensor<?x8x4xf32> into tensor<?x4xf32>
      %J = arith.muli %N, %X : index
      %kj = tensor.collapse_shape %k [[0, 1], [2]] : tensor<?x8x4xf32> into tensor<?x4xf32>
      %vj = tensor.collapse_shape %k [[0, 1], [2]] : tensor<?x8x4xf32> into tensor<?x4xf32>
      %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%I, %J, %E, %E)
        term(%qi, %kj : tensor<?x4xf32>, tensor<?x4xf32>) maps [#q, #k]
        value(%vj : tensor<?x4xf32>) maps [#v]
        score (%i, %j : index, %t : f32) {
          attn.yield %t : f32
        }
        where (%i, %j) {
          %u = arith.floordivsi %j, %X : index
          %y = arith.floordivsi %i, %X : index
          %c = arith.cmpi sle, %u, %y : index
          attn.yield %c : i1
        }
        normalise(exp divide stabilise) : tensor<?x4xf32>
      %oyx = tensor.expand_shape %o [[0, 1], [2]] output_shape [%N, 8, 4] : tensor<?x4xf32> into tensor<?x8x4xf32>
      return %oyx : tensor<?x8x4xf32>
    }
    ```
  }];
}

def AttnSplitMasks : Pass<"attn-split-masks", "::mlir::func::FuncOp"> {
  let summary = "Masks of remainders become dense ones";
  let description = [{
    In a mask that keeps every s-th key each tile of neighbours has live pairs. Positions are numbered anew, so that what
    is kept stands side by side:

    - `(i - j) % s == 0`, or `i % s == j % s`: the remainder is a batch dim, and queries and keys are those that have it.
    - `j % s >= c`, or another comparison that keeps neighbours, at most half of the remainders: the other keys get no number.
    - `if c then A else B`, perhaps in a union, where c is of the batch alone and A or B is one of these: two attentions,
      each of which has no key where the other has some.
    - the first of these anywhere else, in a union or beside conditions on data: copies of the operands have positions
      sorted by remainder, so that those of one are neighbours, and the result is read back in order.

    s and c are known when compiling. The other conditions are written of the new numbers, exactly; a key behind the last
    one is absent. Left alone are attentions whose score, weight or tables read positions, whose rows have a sink, or that
    have further results; masks that read data are sorted only, unless an operand has an element for each pair.

    ```mlir
    #q = affine_map<(i, j, e, f) -> (i, e)>
    #k = affine_map<(i, j, e, f) -> (j, e)>
    #v = affine_map<(i, j, e, f) -> (j, f)>
    func.func @f(%q: tensor<8x16xf32>, %k: tensor<32x16xf32>, %N: index, %M: index, %E: index) -> tensor<8x16xf32> {
      %n = arith.constant 8 : index
      %m = arith.constant 32 : index
      %e = arith.constant 16 : index
      %s = arith.constant 4 : index
      %c = arith.constant 3 : index
      %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%n, %m, %e, %e)
          term(%q, %k : tensor<8x16xf32>, tensor<32x16xf32>) maps [#q, #k] value(%k : tensor<32x16xf32>) maps [#v]
          score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
          where (%i, %j) {
            %r = arith.remsi %j, %s : index
            %b = arith.cmpi eq, %r, %c : index
            attn.yield %b : i1
          }
          normalise(exp divide stabilise) : tensor<8x16xf32>
      return %o : tensor<8x16xf32>
    }
    ```
    becomes
    ```mlir
    affine_map<(d0, d1, d2, d3) -> (d1 * 4 + 3, d2)>
    ...
    attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1)
    ...
          where (%i, %j) {
    ...
            %b = arith.cmpi slt, %k, %m : index
            attn.yield %b : i1
    ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
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
    are the region `mask`, as expressions that later passes read, and the attribute `attn.mask`, as text.

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
      %true = arith.constant true
      %c1 = arith.constant 1 : i64
      %c63 = arith.constant 63 : i64
      %c0 = arith.constant 0 : i64
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
        mask (%i, %j, %i0, %i1, %j0, %j1, %queries, %keys) {
          %f0 = arith.index_cast %i0 : index to i64
          %f1 = arith.subi %f0, %c63 : i64
          %low = arith.maxsi %f1, %c0 : i64
          %end = arith.index_cast %keys : index to i64
          %l0 = arith.index_cast %i1 : index to i64
          %l1 = arith.addi %l0, %c1 : i64
          %high = arith.minsi %end, %l1 : i64
          %l2 = arith.subi %l0, %c63 : i64
          %low_full = arith.maxsi %l2, %c0 : i64
          %f2 = arith.addi %f0, %c1 : i64
          %high_full = arith.minsi %end, %f2 : i64
          attn.keys exact reach(%low, %high) if(%true) full(%low_full, %high_full) if(%true) tables [] ()
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
    Sets `attn.plan` on every `attn.attention` that has none: `streaming` (one pass over the keys, nothing of size N x M
    is stored) where the schedule family can do it, with the pipelines that it is to have and their tiles; else
    `row_block` (its definition, one tile of queries after the other, the scores of a tile in scratch), else
    `materialised` (its definition, scores stored). What is decided here is decided once: all later passes read it. An attention
    without a query dim (a token that is decoded, a pooling) streams as one of a query dim of extent 1. A mask that the
    solver left to an evaluation of each element (data of pairs, no range of keys) is evaluated before for all heads at
    once, so that no piece of keys is computed that no query of a tile sees. Kernels of GPUs read no tables of a mask:
    there it becomes one range of keys, which holds all that a tile reaches.

    Weights that are rounded to f16 or bf16 before they meet the values must be divided first. Their attention becomes two
    that stream: one whose log-sum-exp alone is read, and one without a division whose scores take it off and whose
    weights are rounded as written. A log-sum-exp of 512 or more has too few digits left; a call that finds one computes
    the op as it stands, a tile of queries after the other.

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
    ...
        normalise(exp divide stabilise) {attn.plan = #attn.plan<streaming excluding true, [<rows, queries = 1, ...
    ```
  }];
  let dependentDialects = ["::heed::attn::AttnDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def AttnHoistInvariants : Pass<"attn-hoist-invariants", "::mlir::func::FuncOp"> {
  let summary = "What turns of a loop share is computed once before it";
  let description = [{
    In a loop with constant bounds, what reduces (contractions, softmaxes, attentions, sums) and reads nothing that a turn
    computes moves before the loop, with what it reads and with the checks that come before it. Where the loop's variable
    t is read by `min(t, c)` alone, as by layers that share their weights from the c-th on, the turns before c get a loop
    of their own first: the others are all the same. Elementwise ops stay, which kernels compute on the way.

    ```mlir
    #x = affine_map<(d, e) -> (e)>
    #w = affine_map<(d, e) -> (d, e)>
    #y = affine_map<(d, e) -> (d)>
    func.func @m(%u: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %o = scf.for %t = %c0 to %c3 step %c1 iter_args(%h = %u) -> tensor<4xf32> {
        %l = arith.minsi %t, %c1 : index
        %w = attn.param "layer.{0}.w" [%l] : tensor<4x4xf32>
        %k = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "reduction"]}
            ins(%x, %w : tensor<4xf32>, tensor<4x4xf32>) outs(%u : tensor<4xf32>) {
        ^bb0(%a: f32, %b: f32, %s: f32):
          %p = arith.mulf %a, %b : f32
          %r = arith.addf %s, %p : f32
          linalg.yield %r : f32
        } -> tensor<4xf32>
        %n = func.call @f(%h, %k) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        scf.yield %n : tensor<4xf32>
      }
      return %o : tensor<4xf32>
    }
    func.func private @f(%h: tensor<4xf32>, %k: tensor<4xf32>) -> tensor<4xf32>
    ```
    becomes
    ```mlir
    #x = affine_map<(d, e) -> (e)>
    #w = affine_map<(d, e) -> (d, e)>
    #y = affine_map<(d, e) -> (d)>
    func.func @m(%u: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %w0 = attn.param "layer.0.w" : tensor<4x4xf32>
      %k0 = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "reduction"]}
          ins(%x, %w0 : tensor<4xf32>, tensor<4x4xf32>) outs(%u : tensor<4xf32>) {
      ^bb0(%a: f32, %b: f32, %s: f32):
        %p = arith.mulf %a, %b : f32
        %r = arith.addf %s, %p : f32
        linalg.yield %r : f32
      } -> tensor<4xf32>
      %h0 = func.call @f(%u, %k0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %w1 = attn.param "layer.1.w" : tensor<4x4xf32>
      %k1 = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "reduction"]}
          ins(%x, %w1 : tensor<4xf32>, tensor<4x4xf32>) outs(%u : tensor<4xf32>) {
      ^bb0(%a: f32, %b: f32, %s: f32):
        %p = arith.mulf %a, %b : f32
        %r = arith.addf %s, %p : f32
        linalg.yield %r : f32
      } -> tensor<4xf32>
      %o = scf.for %t = %c1 to %c3 step %c1 iter_args(%h = %h0) -> tensor<4xf32> {
        %n = func.call @f(%h, %k1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        scf.yield %n : tensor<4xf32>
      }
      return %o : tensor<4xf32>
    }
    func.func private @f(%h: tensor<4xf32>, %k: tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
}

#endif
