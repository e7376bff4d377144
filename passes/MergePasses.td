//===- MergePasses.td - kernels that become one ------------------------------------===//
#ifndef HEED_PASSES_MERGEPASSES_TD
#define HEED_PASSES_MERGEPASSES_TD

include "mlir/Pass/PassBase.td"

def AttnMergeElementwise : Pass<"attn-merge-elementwise", "::mlir::ModuleOp"> {
  let summary = "What a step of a loop computes element by element is one kernel";
  let description = [{
    Kernels of elements of one shape in a loop's body that read each other's results in place become one with several results, four
    at most: the cell and the output of a recurrent layer, and what a length keeps of them. What the kernel
    alone reads is not stored. What the later calls need moves before the first.

    ```mlir
    #id = affine_map<(i) -> (i)>
    func.func @m(%x: tensor<8xf32>, %n: index) -> (tensor<8xf32>, tensor<8xf32>) attributes {attn.model} {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %r:2 = scf.for %t = %zero to %n step %one iter_args(%c = %x, %h = %x) -> (tensor<8xf32>, tensor<8xf32>) {
        %0 = func.call @cell(%c, %h) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
        %1 = func.call @output(%0) : (tensor<8xf32>) -> tensor<8xf32>
        scf.yield %0, %1 : tensor<8xf32>, tensor<8xf32>
      }
      return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
    }
    func.func private @cell(%c: tensor<8xf32>, %h: tensor<8xf32>) -> tensor<8xf32> attributes {attn.kernel, attn.kind = "elementwise"} {
      %e = tensor.empty() : tensor<8xf32>
      %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%c, %h : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %s = arith.addf %a, %b : f32
        linalg.yield %s : f32
      } -> tensor<8xf32>
      return %y : tensor<8xf32>
    }
    func.func private @output(%c: tensor<8xf32>) -> tensor<8xf32> attributes {attn.kernel, attn.kind = "elementwise"} {
      %e = tensor.empty() : tensor<8xf32>
      %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%c : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%a: f32, %o: f32):
        %s = math.tanh %a : f32
        linalg.yield %s : f32
      } -> tensor<8xf32>
      return %y : tensor<8xf32>
    }
    ```
    becomes
    ```mlir
    #map = affine_map<(d0) -> (d0)>
    module {
      func.func @m(%arg0: tensor<8xf32>, %arg1: index) -> (tensor<8xf32>, tensor<8xf32>) attributes {attn.model} {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %0:2 = scf.for %arg2 = %c0 to %arg1 step %c1 iter_args(%arg3 = %arg0, %arg4 = %arg0) -> (tensor<8xf32>, tensor<8xf32>) {
          %1:2 = func.call @cells(%arg3, %arg4) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
          scf.yield %1#0, %1#1 : tensor<8xf32>, tensor<8xf32>
        }
        return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
      }
      func.func private @cells(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {attn.kernel, attn.kind = "elementwise"} {
        %0 = tensor.empty() : tensor<8xf32>
        %1 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%arg0, %arg1 : tensor<8xf32>, tensor<8xf32>) outs(%0 : tensor<8xf32>) {
        ^bb0(%in: f32, %in_0: f32, %out: f32):
          %4 = arith.addf %in, %in_0 : f32
          linalg.yield %4 : f32
        } -> tensor<8xf32>
        %2 = tensor.empty() : tensor<8xf32>
        %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%1 : tensor<8xf32>) outs(%2 : tensor<8xf32>) {
        ^bb0(%in: f32, %out: f32):
          %4 = math.tanh %in : f32
          linalg.yield %4 : f32
        } -> tensor<8xf32>
        return %1, %3 : tensor<8xf32>, tensor<8xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def AttnMergeSteps : Pass<"attn-merge-steps", "::mlir::ModuleOp"> {
  let summary = "A step of a state, with the sums over it, is one kernel";
  let description = [{
    A kernel that makes a tensor of one like it that a model or a loop is given (a state, a matrix a head), and the kernels of
    elements and rows that read it, become one with several results, four at most, if a schedule family takes it
    (`Schedule/StateStep.cpp`): head by head the state is then read from memory once, whatever sums are over it before and
    after. What the kernel alone reads is not stored, what the later calls need moves before the first.

    ```mlir
    #id = affine_map<(h, e, f) -> (h, e, f)>
    #key = affine_map<(h, e, f) -> (h, e)>
    #sum = affine_map<(h, f, e) -> (h, e, f)>
    #query = affine_map<(h, f, e) -> (h, e)>
    #row = affine_map<(h, f, e) -> (h, f)>
    func.func @m(%s: tensor<4x64x64xf32>, %k: tensor<4x64xf32>) -> (tensor<4x64x64xf32>, tensor<4x64xf32>) attributes {attn.model} {
      %0 = func.call @update(%s, %k) : (tensor<4x64x64xf32>, tensor<4x64xf32>) -> tensor<4x64x64xf32>
      %1 = func.call @read(%0, %k) : (tensor<4x64x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
      return %0, %1 : tensor<4x64x64xf32>, tensor<4x64xf32>
    }
    func.func private @update(%s: tensor<4x64x64xf32>, %k: tensor<4x64xf32>) -> tensor<4x64x64xf32> attributes {attn.kernel, attn.kind = "elementwise"} {
      %e = tensor.empty() : tensor<4x64x64xf32>
      %y = linalg.generic {indexing_maps = [#id, #key, #id], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%s, %k : tensor<4x64x64xf32>, tensor<4x64xf32>) outs(%e : tensor<4x64x64xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %p = arith.addf %a, %b : f32
        linalg.yield %p : f32
      } -> tensor<4x64x64xf32>
      return %y : tensor<4x64x64xf32>
    }
    func.func private @read(%s: tensor<4x64x64xf32>, %q: tensor<4x64xf32>) -> tensor<4x64xf32> attributes {attn.kernel, attn.kind = "row"} {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<4x64xf32>
      %i = linalg.fill ins(%zero : f32) outs(%e : tensor<4x64xf32>) -> tensor<4x64xf32>
      %y = linalg.generic {indexing_maps = [#sum, #query, #row], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%s, %q : tensor<4x64x64xf32>, tensor<4x64xf32>) outs(%i : tensor<4x64xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %p = arith.mulf %a, %b : f32
        %t = arith.addf %o, %p : f32
        linalg.yield %t : f32
      } -> tensor<4x64xf32>
      return %y : tensor<4x64xf32>
    }
    ```
    becomes
    ```mlir
    #map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
    #map1 = affine_map<(d0, d1, d2) -> (d0, d1)>
    #map2 = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
    #map3 = affine_map<(d0, d1, d2) -> (d0, d2)>
    module {
      func.func @m(%arg0: tensor<4x64x64xf32>, %arg1: tensor<4x64xf32>) -> (tensor<4x64x64xf32>, tensor<4x64xf32>) attributes {attn.model} {
        %0:2 = call @update_step(%arg0, %arg1) : (tensor<4x64x64xf32>, tensor<4x64xf32>) -> (tensor<4x64x64xf32>, tensor<4x64xf32>)
        return %0#0, %0#1 : tensor<4x64x64xf32>, tensor<4x64xf32>
      }
      func.func private @update_step(%arg0: tensor<4x64x64xf32>, %arg1: tensor<4x64xf32>) -> (tensor<4x64x64xf32>, tensor<4x64xf32>) attributes {attn.kernel, attn.kind = "state step"} {
        %0 = tensor.empty() : tensor<4x64x64xf32>
        %1 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %arg1 : tensor<4x64x64xf32>, tensor<4x64xf32>) outs(%0 : tensor<4x64x64xf32>) {
        ^bb0(%in: f32, %in_0: f32, %out: f32):
          %5 = arith.addf %in, %in_0 : f32
          linalg.yield %5 : f32
        } -> tensor<4x64x64xf32>
        %cst = arith.constant 0.000000e+00 : f32
        %2 = tensor.empty() : tensor<4x64xf32>
        %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<4x64xf32>) -> tensor<4x64xf32>
        %4 = linalg.generic {indexing_maps = [#map2, #map3, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%1, %arg1 : tensor<4x64x64xf32>, tensor<4x64xf32>) outs(%3 : tensor<4x64xf32>) {
        ^bb0(%in: f32, %in_0: f32, %out: f32):
          %5 = arith.mulf %in, %in_0 : f32
          %6 = arith.addf %out, %5 : f32
          linalg.yield %6 : f32
        } -> tensor<4x64xf32>
        return %1, %4 : tensor<4x64x64xf32>, tensor<4x64xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def AttnMergeProducts : Pass<"attn-merge-products", "::mlir::ModuleOp"> {
  let summary = "Products of one operand with weights of one shape are one kernel";
  let description = [{
    Up to three kernels that multiply the same tensor with weights alike (queries, keys and values; a gated layer) become one with
    several results. Where the epilogue of one reads the result of another at its own place, that one is a value of the tile
    and is not stored, unless others read it, too. What the later calls need moves before the first. The schedule makes one sum of
    the products and packs their weights side by side.

    ```mlir
    #x = affine_map<(i, o, k) -> (i, k)>
    #w = affine_map<(i, o, k) -> (o, k)>
    #y = affine_map<(i, o, k) -> (i, o)>
    func.func @m(%x: tensor<?x4xf32>, %n: index) -> (tensor<?x8xf32>, tensor<?x8xf32>) attributes {attn.model} {
      %u = attn.param "u" : tensor<8x4xf32>
      %0 = call @product(%x, %u, %n) : (tensor<?x4xf32>, tensor<8x4xf32>, index) -> tensor<?x8xf32>
      %v = attn.param "v" : tensor<8x4xf32>
      %1 = call @product(%x, %v, %n) : (tensor<?x4xf32>, tensor<8x4xf32>, index) -> tensor<?x8xf32>
      return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
    }
    func.func private @product(%x: tensor<?x4xf32>, %w: tensor<8x4xf32>, %n: index) -> tensor<?x8xf32>
        attributes {attn.kernel, attn.kind = "contraction"} {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty(%n) : tensor<?x8xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
      %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<?x4xf32>, tensor<8x4xf32>) outs(%f : tensor<?x8xf32>) {
      ^bb0(%a: f32, %b: f32, %s: f32):
        %p = arith.mulf %a, %b : f32
        %t = arith.addf %s, %p : f32
        linalg.yield %t : f32
      } -> tensor<?x8xf32>
      return %y : tensor<?x8xf32>
    }
    ```
    becomes
    ```mlir
    #map = affine_map<(d0, d1, d2) -> (d0, d2)>
    #map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
    #map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
    module {
      func.func @m(%arg0: tensor<?x4xf32>, %arg1: index) -> (tensor<?x8xf32>, tensor<?x8xf32>) attributes {attn.model} {
        %0 = attn.param "u" : tensor<8x4xf32>
        %1 = attn.param "v" : tensor<8x4xf32>
        %2:2 = call @products(%arg0, %0, %arg1, %1) : (tensor<?x4xf32>, tensor<8x4xf32>, index, tensor<8x4xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>)
        return %2#0, %2#1 : tensor<?x8xf32>, tensor<?x8xf32>
      }
      func.func private @products(%arg0: tensor<?x4xf32>, %arg1: tensor<8x4xf32>, %arg2: index, %arg3: tensor<8x4xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) attributes {attn.kernel, attn.kind = "contraction"} {
        %cst = arith.constant 0.000000e+00 : f32
        %0 = tensor.empty(%arg2) : tensor<?x8xf32>
        %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<?x8xf32>) -> tensor<?x8xf32>
        %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<?x4xf32>, tensor<8x4xf32>) outs(%1 : tensor<?x8xf32>) {
        ^bb0(%in: f32, %in_1: f32, %out: f32):
          %6 = arith.mulf %in, %in_1 : f32
          %7 = arith.addf %out, %6 : f32
          linalg.yield %7 : f32
        } -> tensor<?x8xf32>
        %cst_0 = arith.constant 0.000000e+00 : f32
        %3 = tensor.empty(%arg2) : tensor<?x8xf32>
        %4 = linalg.fill ins(%cst_0 : f32) outs(%3 : tensor<?x8xf32>) -> tensor<?x8xf32>
        %5 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg3 : tensor<?x4xf32>, tensor<8x4xf32>) outs(%4 : tensor<?x8xf32>) {
        ^bb0(%in: f32, %in_1: f32, %out: f32):
          %6 = arith.mulf %in, %in_1 : f32
          %7 = arith.addf %out, %6 : f32
          linalg.yield %7 : f32
        } -> tensor<?x8xf32>
        return %2, %5 : tensor<?x8xf32>, tensor<?x8xf32>
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

#endif
