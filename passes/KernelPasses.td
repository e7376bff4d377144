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
