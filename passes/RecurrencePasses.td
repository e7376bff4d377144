//===- RecurrencePasses.td - recurrences: what their steps are ----------------------===//
#ifndef HEED_PASSES_RECURRENCEPASSES_TD
#define HEED_PASSES_RECURRENCEPASSES_TD

include "mlir/Pass/PassBase.td"

def AttnSplitScans : Pass<"attn-split-scans", "::mlir::func::FuncOp"> {
  let summary = "States that read no larger state, ahead of the others";
  let description = [{
    States of an `attn.scan` that have fewer axes than its largest and are made of one another alone (a running maximum of gates, a
    counter, the cell of a controller) are a recurrence of their own, where other states read them. It leaves them as rows, as they
    are before each step, and the rest reads these like an input: what was a product with a state may be linear now
    (`attn-raise-linear-attention`: mLSTM's matrix, stabilised by a maximum), and sums with it leave the steps
    (`attn-batch-steps`). No number changes.

    ```mlir
    #id = affine_map<(d) -> (d)>
    #one = affine_map<(d) -> ()>
    func.func @f(%x: tensor<8xf32>, %m0: tensor<f32>, %h0: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) {
      %lo = arith.constant 0 : index
      %hi = arith.constant 8 : index
      %m, %h = attn.scan %t = %lo to %hi states(%a = %m0 : tensor<f32>, %s = %h0 : tensor<4xf32>) {
        %row = tensor.extract_slice %x[%t] [1] [1] : tensor<8xf32> to tensor<f32>
        %e = tensor.empty() : tensor<f32>
        %e4 = tensor.empty() : tensor<4xf32>
        %n = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
            ins(%a, %row : tensor<f32>, tensor<f32>) outs(%e : tensor<f32>) {
        ^bb0(%p: f32, %q: f32, %o: f32):
          %r = arith.maximumf %p, %q : f32
          linalg.yield %r : f32
        } -> tensor<f32>
        %k = linalg.generic {indexing_maps = [#one, #id, #id], iterator_types = ["parallel"]}
            ins(%n, %s : tensor<f32>, tensor<4xf32>) outs(%e4 : tensor<4xf32>) {
        ^bb0(%p: f32, %q: f32, %o: f32):
          %r = arith.mulf %p, %q : f32
          linalg.yield %r : f32
        } -> tensor<4xf32>
        attn.step states(%n, %k : tensor<f32>, tensor<4xf32>)
      }
      return %m, %h : tensor<f32>, tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    ...
    %m, %rows = attn.scan %t = %lo to %hi states(%a = %m0 : tensor<f32>) rows(%e axis 0 : tensor<8xf32>) {
      ...
      attn.step states(%n : tensor<f32>) rows(%a : tensor<f32>)
    }
    %h = attn.scan %t = %lo to %hi states(%s = %h0 : tensor<4xf32>) {
      %a = tensor.extract_slice %rows[%t] [1] [1] : tensor<8xf32> to tensor<f32>
      ...
      attn.step states(%k : tensor<4xf32>)
    }
    ...
    ```
  }];
  let dependentDialects = ["::heed::attn::AttnDialect", "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

def AttnBatchSteps : Pass<"attn-batch-steps", "::mlir::func::FuncOp"> {
  let summary = "Sums that no state enters, for all steps at once";
  let description = [{
    A sum in the body of an `attn.scan` that reads nothing of a state (the products of a recurrent layer with its input)
    has one index more before the recurrence, the step, and each step reads its row: one product of matrices in place
    of one with a vector in each step. Elementwise ops between are computed with it. Where all rows are read from
    the last to the first, the index more is the position. What is the same in every step is computed once. Left alone,
    with a remark, is what stands behind a check: that may say that it may be read.

    ```mlir
    #x = affine_map<(d, e) -> (e)>
    #w = affine_map<(d, e) -> (d, e)>
    #y = affine_map<(d, e) -> (d)>
    #id = affine_map<(d) -> (d)>
    func.func @f(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>, %h0: tensor<4xf32>) -> tensor<4xf32> {
      %lo = arith.constant 0 : index
      %hi = arith.constant 8 : index
      %h = attn.scan %t = %lo to %hi states(%s = %h0 : tensor<4xf32>) {
        %zero = arith.constant 0.0 : f32
        %row = tensor.extract_slice %x[%t, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
        %e = tensor.empty() : tensor<4xf32>
        %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
        %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "reduction"]}
            ins(%row, %w : tensor<4xf32>, tensor<4x4xf32>) outs(%z : tensor<4xf32>) {
        ^bb0(%a: f32, %b: f32, %sum: f32):
          %m = arith.mulf %a, %b : f32
          %r = arith.addf %sum, %m : f32
          linalg.yield %r : f32
        } -> tensor<4xf32>
        %n = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
            ins(%s, %p : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
        ^bb0(%a: f32, %b: f32, %o: f32):
          %r = arith.addf %a, %b : f32
          linalg.yield %r : f32
        } -> tensor<4xf32>
        attn.step states(%n : tensor<4xf32>)
      }
      return %h : tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    #map = affine_map<(d0, d1, d2) -> (d1, d2)>
    #map1 = affine_map<(d0, d1, d2) -> (d0, d2)>
    #map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
    #id = affine_map<(d0) -> (d0)>
    func.func @f(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>, %h0: tensor<4xf32>) -> tensor<4xf32> {
      %lo = arith.constant 0 : index
      %hi = arith.constant 8 : index
      %empty = tensor.empty() : tensor<8x4xf32>
      %zero = arith.constant 0.000000e+00 : f32
      %z = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x4xf32>) -> tensor<8x4xf32>
      %p = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%w, %x : tensor<4x4xf32>, tensor<8x4xf32>) outs(%z : tensor<8x4xf32>) {
      ^bb0(%a: f32, %b: f32, %sum: f32):
        %m = arith.mulf %a, %b : f32
        %r = arith.addf %sum, %m : f32
        linalg.yield %r : f32
      } -> tensor<8x4xf32>
      %h = attn.scan %t = %lo to %hi states(%s = %h0 : tensor<4xf32>) {
        %e = tensor.empty() : tensor<4xf32>
        %row = tensor.extract_slice %p[%t, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
        %n = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
            ins(%s, %row : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
        ^bb0(%a: f32, %b: f32, %o: f32):
          %r = arith.addf %a, %b : f32
          linalg.yield %r : f32
        } -> tensor<4xf32>
        attn.step states(%n : tensor<4xf32>)
      }
      return %h : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def AttnRaiseLinearAttention : Pass<"attn-raise-linear-attention", "::mlir::func::FuncOp"> {
  let summary = "Recurrences and causal sums as linear attentions";
  let description = [{
    An `attn.scan` whose states are sums of products, each state times a decay in each step, less what a key erases of it (delta
    rules), and whose rows read them by sums over an axis, is an `attn.linear_attention` for each such sum; rows are computed from
    their outputs for all steps at once. How it is written does not matter: the element of each state and of each row is taken as an
    expression. A state to which a step adds several products, `k v + l w`, is the sum of two that decay alike; heads that share
    keys, and decay each by its own, are batch dims. A sum over what comes before, `sum_(j <= i) (sum_e q[i,e] k[j,e]) v[j,f]`, is one, too, also with a factor a^(i -
    j), exp(g (i - j)) or exp(c_i - c_j), c a sum over what comes before, unless few steps cost less as pairs; and one over terms
    that do not depend on i, or a product, a maximum, a minimum, an argmax of them, is a scan of its own, also a sum of exponentials
    less the maximum of what it sums; with a mask of the keys, too. The state of a sum or a product of f32 is an f64 where there are
    more than 256 terms, or an unknown number: an f32 would be rounded with each. So is a convolution with a^(i - j), or with a sum of such powers
    (an SSM's kernel written out, over keys or over lags): its state has an element for each power. Over keys of the same segment it begins anew with each, in calls
    whose segments are sorted; others take the sum as it is written.

    What was recognised is proven: a step of the op is compared with the step of the scan, and for a causal sum the products of all
    pairs, modulo the axioms of `passes/Algebra/`; that a power, or exp(c_i - c_j), is the product of the decays between is one
    more, also where c is -inf. Left alone, with a remark: decays that differ along an axis of values, or along one of keys where
    there are fewer than eight values (`attn-block-scans` takes those), states that a row reads otherwise, erasing in some steps
    alone, and sums with a condition on the key besides, where a query may see no key at all.

    ```mlir
    #row = affine_map<(e, f) -> (e)>
    #col = affine_map<(e, f) -> (f)>
    #id = affine_map<(e, f) -> (e, f)>
    func.func @f(%q: tensor<8x4xf32>, %k: tensor<8x4xf32>, %v: tensor<8x6xf32>) -> tensor<8x6xf32> {
      %lo = arith.constant 0 : index
      %hi = arith.constant 8 : index
      %zero = arith.constant dense<0.0> : tensor<4x6xf32>
      %none = arith.constant dense<0.0> : tensor<6xf32>
      %out = tensor.empty() : tensor<8x6xf32>
      %S, %o = attn.scan %t = %lo to %hi states(%s = %zero : tensor<4x6xf32>) rows(%out axis 0 : tensor<8x6xf32>) {
        %kt = tensor.extract_slice %k[%t, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
        %vt = tensor.extract_slice %v[%t, 0] [1, 6] [1, 1] : tensor<8x6xf32> to tensor<6xf32>
        %qt = tensor.extract_slice %q[%t, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
        %n = linalg.generic {indexing_maps = [#row, #col, #id], iterator_types = ["parallel", "parallel"]}
            ins(%kt, %vt : tensor<4xf32>, tensor<6xf32>) outs(%s : tensor<4x6xf32>) {
        ^bb0(%a: f32, %b: f32, %old: f32):
          %m = arith.mulf %a, %b : f32
          %r = arith.addf %old, %m : f32
          linalg.yield %r : f32
        } -> tensor<4x6xf32>
        %row = linalg.generic {indexing_maps = [#row, #id, #col], iterator_types = ["reduction", "parallel"]}
            ins(%qt, %n : tensor<4xf32>, tensor<4x6xf32>) outs(%none : tensor<6xf32>) {
        ^bb0(%a: f32, %b: f32, %sum: f32):
          %m = arith.mulf %a, %b : f32
          %r = arith.addf %sum, %m : f32
          linalg.yield %r : f32
        } -> tensor<6xf32>
        attn.step states(%n : tensor<4x6xf32>) rows(%row : tensor<6xf32>)
      }
      return %o : tensor<8x6xf32>
    }
    ```
    becomes
    ```mlir
    #map = affine_map<(d0, d1, d2) -> (d0, d1)>
    #map1 = affine_map<(d0, d1, d2) -> (d0, d2)>
    func.func @f(%q: tensor<8x4xf32>, %k: tensor<8x4xf32>, %v: tensor<8x6xf32>) -> tensor<8x6xf32> {
      %F = arith.constant 6 : index
      %E = arith.constant 4 : index
      %N = arith.constant 8 : index
      %o, %S = attn.linear_attention dims(batch = 0, contract = 1, value = 1) sizes(%N, %E, %F)
          query(%q : tensor<8x4xf32>) key(%k : tensor<8x4xf32>) value(%v : tensor<8x6xf32>)
          maps [#map, #map, #map1] : tensor<8x6xf32>, tensor<4x6xf32>
      return %o : tensor<8x6xf32>
    }
    ```
  }];
  let dependentDialects = ["::heed::attn::AttnDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def AttnWidenSums : Pass<"attn-widen-sums", "::mlir::func::FuncOp"> {
  let summary = "States that each step adds to, as f64";
  let description = [{
    A state of f32 to which each step of an `attn.scan` adds something is carried as f64, where there are more than 256 steps, or an
    unknown number: it would be rounded with each, always the same way where they add the same. What else is made of the state, rows
    among it, reads it rounded. States that are multiplied in a step stay f32.

    ```mlir
    #id = affine_map<(d) -> (d)>
    func.func @f(%x: tensor<1000x4xf32>, %h0: tensor<4xf32>) -> tensor<4xf32> {
      %lo = arith.constant 0 : index
      %hi = arith.constant 1000 : index
      %h = attn.scan %t = %lo to %hi states(%s = %h0 : tensor<4xf32>) {
        %row = tensor.extract_slice %x[%t, 0] [1, 4] [1, 1] : tensor<1000x4xf32> to tensor<4xf32>
        %o = tensor.empty() : tensor<4xf32>
        %n = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
            ins(%s, %row : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) {
        ^bb0(%a: f32, %b: f32, %c: f32):
          %r = arith.addf %a, %b : f32
          linalg.yield %r : f32
        } -> tensor<4xf32>
        attn.step states(%n : tensor<4xf32>)
      }
      return %h : tensor<4xf32>
    }
    ```
    becomes
    ```mlir
    #id = affine_map<(d) -> (d)>
    func.func @f(%x: tensor<1000x4xf32>, %h0: tensor<4xf32>) -> tensor<4xf32> {
      %lo = arith.constant 0 : index
      %hi = arith.constant 1000 : index
      %e = tensor.empty() : tensor<4xf64>
      %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%h0 : tensor<4xf32>) outs(%e : tensor<4xf64>) {
      ^bb0(%a: f32, %c: f64):
        %r = arith.extf %a : f32 to f64
        linalg.yield %r : f64
      } -> tensor<4xf64>
      %h = attn.scan %t = %lo to %hi states(%s = %z : tensor<4xf64>) {
        %row = tensor.extract_slice %x[%t, 0] [1, 4] [1, 1] : tensor<1000x4xf32> to tensor<4xf32>
        %o = tensor.empty() : tensor<4xf64>
        %n = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
            ins(%row, %s : tensor<4xf32>, tensor<4xf64>) outs(%o : tensor<4xf64>) {
        ^bb0(%a: f32, %b: f64, %c: f64):
          %w = arith.extf %a : f32 to f64
          %r = arith.addf %w, %b : f64
          linalg.yield %r : f64
        } -> tensor<4xf64>
        attn.step states(%n : tensor<4xf64>)
      }
      %f = tensor.empty() : tensor<4xf32>
      %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%h : tensor<4xf64>) outs(%f : tensor<4xf32>) {
      ^bb0(%a: f64, %c: f32):
        %r = arith.truncf %a : f64 to f32
        linalg.yield %r : f32
      } -> tensor<4xf32>
      return %y : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["::heed::attn::AttnDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def AttnChunkLinearAttention : Pass<"attn-chunk-linear-attention", "::mlir::func::FuncOp"> {
  let summary = "The form of each linear attention: one step, parallel, sequential, chunked";
  let description = [{
    Of a linear attention of one step the definition is left. As many steps as a chunk has, or fewer, are products of each query with
    the keys before it, *parallel*. More are *chunked*: a loop over chunks of 64 steps, or of more where the state is large, that
    carries the state; a query sees the keys of its chunk as pairs, and the state for all before:

    ```text
    O[t] = sum_(j <= t) D(t, j) (q_t . k_j) v_j + D(t, -1) q_t . S          j and t within the chunk
    S'   = D(last, -1) S + sum_j D(last, j) k_j v_j
    ```
    with D(t, j) the product of the decays behind step j up to step t. The last chunk may be shorter. Decays are multiplied forward
    alone, by an `attn.recurrence`, so one of 0, or one that is lost in the end, is no division by 0; products of decays that are the
    same in each step are made once, before the loop. Where channels of keys decay each by its own, D has these axes, too: it stands in
    the sum of q_t . k_j, and chunks are of 16 steps. A step that erases r_t S writes a row of

    ```text
    u_t + sum_(j < t) D(t - 1, j) (r_t . k_j) u_j = v_t - D(t - 1, -1) r_t . S
    ```
    in place of v_t: an `attn.triangular_solve` of the chunk (WY form).

    Where the columns of the state are known to be short, steps are taken one after the other, *sequential*: `attn-block-scans` keeps
    columns in the first cache. A sum of very many products is rounded as often as there are, so more than 2048 steps, or an unknown
    number, of which none erases are taken in blocks of 512, which begin with zeros: O and S' as above, with the steps of the block
    in place of the sums. The state is carried from block to block as f64, and from chunk to chunk behind the first 256 of them.
    Step by step stay, more than a chunk, a sum of keys without
    values, the state of which is no larger than a key, and values that decay each by its own.

    ```mlir
    #row = affine_map<(t, e, f) -> (t, e)>
    #col = affine_map<(t, e, f) -> (t, f)>
    func.func @f(%q: tensor<?x4xf32>, %k: tensor<?x4xf32>, %v: tensor<?x6xf32>, %N: index) -> tensor<?x6xf32> {
      %E = arith.constant 4 : index
      %F = arith.constant 6 : index
      %o, %S = attn.linear_attention dims(batch = 0, contract = 1, value = 1) sizes(%N, %E, %F)
          query(%q : tensor<?x4xf32>) key(%k : tensor<?x4xf32>) value(%v : tensor<?x6xf32>)
          maps [#row, #row, #col] : tensor<?x6xf32>, tensor<4x6xf32>
      return %o : tensor<?x6xf32>
    }
    ```
    becomes
    ```mlir
    ...
    %0:2 = scf.for %first = %c0 to %N step %c64 iter_args(%S = %zero, %o = %empty) -> (tensor<4x6xf32>, tensor<?x6xf32>) {
      %1 = arith.subi %N, %first : index
      %2 = arith.minsi %1, %c64 : index
      %3 = arith.cmpi sgt, %first, %c0 : index
      %q = tensor.extract_slice %arg0[%first, 0] [%2, 4] [1, 1] : tensor<?x4xf32> to tensor<?x4xf32>
      %k = tensor.extract_slice %arg1[%first, 0] [%2, 4] [1, 1] : tensor<?x4xf32> to tensor<?x4xf32>
      %v = tensor.extract_slice %arg2[%first, 0] [%2, 6] [1, 1] : tensor<?x6xf32> to tensor<?x6xf32>
      ...
      %inserted_slice = tensor.insert_slice %out into %o[%first, 0] [%2, 6] [1, 1] : tensor<?x6xf32> into tensor<?x6xf32>
      scf.yield %next, %inserted_slice : tensor<4x6xf32>, tensor<?x6xf32>
    }
    ...
    ```
  }];
  let dependentDialects = ["::heed::attn::AttnDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def AttnFuseScans : Pass<"attn-fuse-scans", "::mlir::func::FuncOp"> {
  let summary = "Recurrences that read each other's rows, side by side";
  let description = [{
    An `attn.scan` that reads rows which another of as many steps leaves, in the same step or in the one before, is one recurrence
    with it, with the states of both. What is made of its rows element by element is a row of it, and rows that nobody reads then
    are none. Of recurrences alone whose elements are each its own. So a log-sum-exp over what comes before, which is a maximum,
    a sum of exponentials that is rescaled when the maximum changes, and a logarithm, stores neither of the former.

    ```mlir
    #id = affine_map<(d) -> (d)>
    #ij = affine_map<(i, d) -> (i, d)>
    func.func @f(%x: tensor<8x4xf32>, %h0: tensor<4xf32>) -> tensor<8x4xf32> {
      %lo = arith.constant 0 : index
      %hi = arith.constant 8 : index
      %e = tensor.empty() : tensor<8x4xf32>
      %h, %y = attn.scan %t = %lo to %hi states(%s = %h0 : tensor<4xf32>) rows(%e axis 0 : tensor<8x4xf32>) {
        %row = tensor.extract_slice %x[%t, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
        %o = tensor.empty() : tensor<4xf32>
        %n = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
            ins(%s, %row : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) {
        ^bb0(%a: f32, %b: f32, %c: f32):
          %r = arith.maximumf %a, %b : f32
          linalg.yield %r : f32
        } -> tensor<4xf32>
        attn.step states(%n : tensor<4xf32>) rows(%n : tensor<4xf32>)
      }
      %z = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
          ins(%y : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
      ^bb0(%a: f32, %c: f32):
        %r = math.exp %a : f32
        linalg.yield %r : f32
      } -> tensor<8x4xf32>
      return %z : tensor<8x4xf32>
    }
    ```
    becomes
    ```mlir
    #id = affine_map<(d) -> (d)>
    func.func @f(%x: tensor<8x4xf32>, %h0: tensor<4xf32>) -> tensor<8x4xf32> {
      %lo = arith.constant 0 : index
      %hi = arith.constant 8 : index
      %e = tensor.empty() : tensor<8x4xf32>
      %h, %z = attn.scan %t = %lo to %hi states(%s = %h0 : tensor<4xf32>) rows(%e axis 0 : tensor<8x4xf32>) {
        %row = tensor.extract_slice %x[%t, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
        %o = tensor.empty() : tensor<4xf32>
        %n = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
            ins(%s, %row : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) {
        ^bb0(%a: f32, %b: f32, %c: f32):
          %r = arith.maximumf %a, %b : f32
          linalg.yield %r : f32
        } -> tensor<4xf32>
        %p = tensor.empty() : tensor<4xf32>
        %m = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
            ins(%n : tensor<4xf32>) outs(%p : tensor<4xf32>) {
        ^bb0(%a: f32, %c: f32):
          %r = math.exp %a : f32
          linalg.yield %r : f32
        } -> tensor<4xf32>
        attn.step states(%n : tensor<4xf32>) rows(%m : tensor<4xf32>)
      }
      return %z : tensor<8x4xf32>
    }
    ```
  }];
  let dependentDialects = ["::heed::attn::AttnDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def AttnBlockScans : Pass<"attn-block-scans", "::mlir::func::FuncOp"> {
  let summary = "Recurrences whose elements are each its own, many steps in one kernel";
  let description = [{
    Where each element of the states after a step is made of the same element of the states before it (gates, decays of a
    channel, maxima, pairs of real and imaginary parts), one kernel takes a block of steps.

    If rows, too, are made of their own element of the states (sums, maxima, log-sum-exps over what comes before), that is an
    `attn.element_scan`, which stores the rows alone. Where these have the steps as their last axis, a block has as many steps as
    leave what a vector of states was in half of a second cache, thousands; else 8, which registers hold, or more where a step is
    short. If a step makes an element of that element and of sums over
    its column, one known axis of 128 numbers at most (what a delta rule holds), and rows are made of such sums (state-space
    models), that is an `attn.sum_scan`: that axis becomes the last but one, so that vectors are columns, which stay in registers
    or the first cache for 8 to 64 steps; what no step enters, or is the same in all columns, is computed before if it costs;
    exp(x a), where no step enters a, is 2^(x (a log2 e)), and what the places of a column have in common is multiplied first.
    Else it is an `attn.recurrence`, of as many steps as leave all that the states were in a cache: 64 at most, by their
    extents where a call alone has them. What rows make of the states is computed for a block at once, so a projection of the
    states is a product of matrices. Of exp(a - max(a, b)) and exp(b - max(a, b)) one is exp(0): they have one exponential. Left
    alone, with a remark, is a state that a product mixes.

    ```mlir
    #id = affine_map<(d) -> (d)>
    func.func @f(%x: tensor<8x4xf32>, %h0: tensor<4xf32>) -> (tensor<4xf32>, tensor<8x4xf32>) {
      %zero = arith.constant 0 : index
      %eight = arith.constant 8 : index
      %e = tensor.empty() : tensor<8x4xf32>
      %h, %y = attn.scan %t = %zero to %eight states(%s = %h0 : tensor<4xf32>) rows(%e axis 0 : tensor<8x4xf32>) {
        %row = tensor.extract_slice %x[%t, 0] [1, 4] [1, 1] : tensor<8x4xf32> to tensor<4xf32>
        %o = tensor.empty() : tensor<4xf32>
        %n = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
            ins(%s, %row : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>) {
        ^bb0(%a: f32, %b: f32, %c: f32):
          %r = arith.maximumf %a, %b : f32
          linalg.yield %r : f32
        } -> tensor<4xf32>
        attn.step states(%n : tensor<4xf32>) rows(%n : tensor<4xf32>)
      }
      return %h, %y : tensor<4xf32>, tensor<8x4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<8x4xf32>, %h0: tensor<4xf32>) -> (tensor<4xf32>, tensor<8x4xf32>) {
      %four = arith.constant 4 : index
      %zero = arith.constant 0 : index
      %eight = arith.constant 8 : index
      %y, %h = attn.element_scan from %zero steps(%eight) sizes(%four) starts(%h0 : tensor<4xf32>) next (%t, %d : index, %old : f32) {
        %a = tensor.extract %x[%t, %d] : tensor<8x4xf32>
        %new = arith.maximumf %old, %a : f32
        attn.next %new : f32
      } leave (%t, %d : index, %before, %after : f32) {
        attn.next %after : f32
      } axis 0 rows(tensor<8x4xf32>) states(tensor<4xf32>)
      return %h, %y : tensor<4xf32>, tensor<8x4xf32>
    }
    ```
  }];
  let dependentDialects = ["::heed::attn::AttnDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def AttnLowerScans : Pass<"attn-lower-scans", "::mlir::func::FuncOp"> {
  let summary = "Recurrences as loops over their steps";
  let description = [{
    A recurrence that no other form was found for is its definition: a loop that carries the states, and the outputs,
    of which each step writes its row. The passes behind this one know loops alone.

    ```mlir
    func.func @f(%x: tensor<?x4xf32>, %S0: tensor<4xf32>, %N: index) -> (tensor<4xf32>, tensor<?x4xf32>) {
      %zero = arith.constant 0 : index
      %e = tensor.empty(%N) : tensor<?x4xf32>
      %S, %o = attn.scan %t = %zero to %N states(%s = %S0 : tensor<4xf32>) rows(%e axis 0 : tensor<?x4xf32>) {
        %row = tensor.extract_slice %x[%t, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
        attn.step states(%row : tensor<4xf32>) rows(%s : tensor<4xf32>)
      }
      return %S, %o : tensor<4xf32>, tensor<?x4xf32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<?x4xf32>, %S0: tensor<4xf32>, %N: index) -> (tensor<4xf32>, tensor<?x4xf32>) {
      %zero = arith.constant 0 : index
      %e = tensor.empty(%N) : tensor<?x4xf32>
      %one = arith.constant 1 : index
      %r:2 = scf.for %t = %zero to %N step %one iter_args(%s = %S0, %o = %e) -> (tensor<4xf32>, tensor<?x4xf32>) {
        %row = tensor.extract_slice %x[%t, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
        %p = arith.subi %t, %zero : index
        %i = tensor.insert_slice %s into %o[%p, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
        scf.yield %row, %i : tensor<4xf32>, tensor<?x4xf32>
      }
      return %r#0, %r#1 : tensor<4xf32>, tensor<?x4xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect"];
}

#endif
