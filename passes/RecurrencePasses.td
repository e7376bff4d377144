//===- RecurrencePasses.td - recurrences: what their steps are ----------------------===//
#ifndef HEED_PASSES_RECURRENCEPASSES_TD
#define HEED_PASSES_RECURRENCEPASSES_TD

include "mlir/Pass/PassBase.td"

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
  let description = [{ TODO }];
  let dependentDialects = ["::heed::attn::AttnDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def AttnChunkLinearAttention : Pass<"attn-chunk-linear-attention", "::mlir::func::FuncOp"> {
  let summary = "The form of each linear attention: one step, parallel, chunked";
  let description = [{ TODO }];
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
