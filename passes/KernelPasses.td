//===- KernelPasses.td - from mathematics to kernels and their schedules -----------===//
#ifndef HEED_PASSES_KERNELPASSES_TD
#define HEED_PASSES_KERNELPASSES_TD

include "mlir/Pass/PassBase.td"

def AttnFormKernels : Pass<"attn-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Outlines the tensor mathematics of a model as kernels";
  let description = [{
    What one kernel can compute without storing what is between is one function with `attn.kernel`: elementwise
    producers, the epilogue of a contraction, reductions over the same rows; of a product with a small matrix that is no
    parameter (linear attention's state) what its rows are computed from, too, and sums over
    them; of a long sum with a small result what its terms are computed from; of an attention that streams the joining of
    its keys and values (`if j < c then memory[j] else k[j - c]`, what `concat` is), whose parts it reads where they lie. Equal kernels are one function. What
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

def AttnStreamAttention : Pass<"attn-stream-attention", "::mlir::func::FuncOp"> {
  let summary = "Attentions that stream as the state of each row and what finishes it";
  let description = [{
    Of kernels. An `attn.attention` whose plan is to stream becomes `attn.online_attention`, whose results are what is
    carried from block to block of keys, and `attn.finish`, which makes of that what the attention's results are. A
    maximum is carried where weights are exponentials and divided: there it changes no result, whether the model
    subtracts it or not. Both ops stay one kernel: nothing of the state is stored.

    ```mlir
    #q = affine_map<(i, j, e, f) -> (i, e)>
    #k = affine_map<(i, j, e, f) -> (j, e)>
    #v = affine_map<(i, j, e, f) -> (j, f)>
    func.func private @f(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %N: index, %M: index, %E: index, %F: index)
        -> tensor<?x8xf32> attributes {attn.kernel} {
      %o = attn.attention dims(batch = 0, query = 1, key = 1, contract = 1, value = 1) sizes(%N, %M, %E, %F)
          term(%q, %k : tensor<?x8xf32>, tensor<?x8xf32>) maps [#q, #k] value(%k : tensor<?x8xf32>) maps [#v]
          score (%i, %j : index, %t : f32) { attn.yield %t : f32 }
          normalise(exp divide) {attn.plan = #attn.plan<streaming, [<tiles, queries = 32, block = 64, piece = 64>]>}
          : tensor<?x8xf32>
      return %o : tensor<?x8xf32>
    }
    ```
    becomes
    ```mlir
    ...
      %acc, %max, %sum = attn.online_attention dims(...) ...
          normalise(exp) {attn.plan = #attn.plan<streaming, ...>} : tensor<?x?xf32>, max tensor<?xf32>, sum tensor<?xf32>
      %o = attn.finish %acc max(%max : tensor<?xf32>) sum(%sum : tensor<?xf32>) : tensor<?x?xf32> -> tensor<?x8xf32>
    ```
  }];
  let dependentDialects = ["::heed::attn::AttnDialect"];
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
    layers there is one instance a layer. Runs on tensor mathematics, before kernels are formed, so that none computes anew
    what stays the same. Left alone, with a remark: what needs a size that is known in a call only, what depends on an
    input, and elementwise ops that only spread their inputs over a larger tensor.

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
    #map = affine_map<()[s0, s1] -> (s1 * 4 + s0 * 4)>
    #map1 = affine_map<()[s0, s1] -> (s0)>
    module attributes {halide.target = {cores = 2 : i64, l1 = 32768 : i64, l2 = 1048576 : i64, name = "x86-64-v3",
                                         vector_bits = 256 : i64, vector_registers = 16 : i64}} {
      func.func @scale(%arg0: tensor<?xf32>, %arg1: f32, %arg2: index) -> tensor<?xf32> attributes {attn.model} {
        %0 = tensor.empty(%arg2) : tensor<?xf32>
        %1 = halide.call @scale_elementwise(%arg0, %arg1, %arg2 : tensor<?xf32>, f32, index)
            outs(%0 : tensor<?xf32>) -> tensor<?xf32>
        return %1 : tensor<?xf32>
      }
      halide.pipeline @scale_elementwise attributes {attn.cost = {axes = array<i64: -1, 0>, bytes = #map, flops = #map1, names = ["a2", "a0"]}} {
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
        halide.stream_stores %f0 beyond 4194304
      }
    }
    ```
  }];
  let dependentDialects = ["::heed::halide::HalideDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def HalideExpandMath : Pass<"halide-expand-math"> {
  let summary = "Functions of `math` in pipelines written out where libHalide's do not hold for every float";
  let description = [{
    exp, expm1, log, pow, erf and tanh of f32 become polynomials on scalars, right for NaN, infinities and signed zeros; exp2,
    log2, log1p and, of other types, expm1, which libHalide has not, become those that it has. A `math.log` with flags is
    libHalide's own, for finite positive numbers alone. Runs on each pipeline before its code is made; `--emit=halide`
    shows it before that.

    ```mlir
    halide.pipeline @entropy {
      %x = halide.buffer "x" ("i") : f64
      %y = halide.func "y" (%i = "i") : f64 {
        %0 = halide.read %x[%i] : f64
        %1 = math.log2 %0 : f64
        halide.yield %1 : f64
      }
      halide.output %y
    }
    ```
    becomes
    ```mlir
    halide.pipeline @entropy {
      %x = halide.buffer "x" ("i") : f64
      %y = halide.func "y" (%i = "i") : f64 {
        %0 = halide.read %x[%i] : f64
        %1 = math.log %0 : f64
        %cst = arith.constant 1.4426950408889634 : f64
        %2 = arith.mulf %1, %cst : f64
        halide.yield %2 : f64
      }
      halide.output %y
    }
    ```
  }];
  let dependentDialects = ["::heed::halide::HalideDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

#endif
