//===- Passes.td - the passes of the reference backend -------------------------------------===//
// They live apart from passes/, so that no pass of the fast backend can bend the reference.

#ifndef HEED_COMPILER_REFERENCE_PASSES_TD
#define HEED_COMPILER_REFERENCE_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnDecompose : Pass<"attn-decompose"> {
  let summary = "Replace attn ops by their definition in upstream ops";
  let description = [{
    Every attn op over tensors becomes `linalg.generic` ops with `arith`, `math` and `scf` bodies. Scores are
    stored whole: this is what the op means, not how to compute it fast.

    ```mlir
    func.func @f(%s: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xi1>) {
      %p, %live = attn.softmax %s axes([1]) : tensor<4x8xf32>, tensor<4x8xi1>
      return %p, %live : tensor<4x8xf32>, tensor<4x8xi1>
    }
    ```
    becomes
    ```mlir
    ...
        ^bb0(%in: f32, %live: i1, %out: f32):
          %a = arith.select %live, %in, %lowest : f32
          %m = arith.maximumf %out, %a : f32
          linalg.yield %m : f32
        } -> tensor<4xf32>
    ...
          %e = math.exp %d : f32
          ...
          %l = arith.addf %out, %w : f32
          linalg.yield %l : f32
        } -> tensor<4xf32>
    ...
          %w = math.exp %d : f32
          %p = arith.divf %w, %l : f32
    ...
          linalg.yield %r, %live : f32, i1
        } -> (tensor<4x8xf32>, tensor<4x8xi1>)
    ...
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

def ReferencePromote : Pass<"reference-promote", "::mlir::func::FuncOp"> {
  let summary = "Compute in f64 what is declared f32";
  let description = [{
    f32 values and tensors become f64; f16 and bf16 stay storage, and a cast to one of them rounds. What a
    function takes keeps its type and is extended at entry, parameters where they are read. A value that feeds a
    comparison, a conversion to int, `round`, `floor`, `ceil` or `trunc` is first rounded to f32, so that the
    reference takes the same discrete choices as a program in f32 would; so is a cast from f64 to f32. Results
    are rounded back to f32 unless `f64-results` keeps them as they are. With `nudge`, what was computed and is
    rounded to f16 or bf16 is that part of itself larger first: another number comes out where a program in f32
    may round to either of two.

    ```mlir
    func.func @less(%x: f32, %y: f32) -> i1 {
      %s = arith.addf %x, %y : f32
      %c = arith.cmpf olt, %s, %y : f32
      return %c : i1
    }
    ```
    becomes
    ```mlir
    func.func @less(%x: f32, %y: f32) -> i1 {
      %y64 = arith.extf %y : f32 to f64
      %x64 = arith.extf %x : f32 to f64
      %s = arith.addf %x64, %y64 : f64
      %s32 = arith.truncf %s : f64 to f32
      %sr = arith.extf %s32 : f32 to f64
      %c = arith.cmpf olt, %sr, %y64 : f64
      return %c : i1
    }
    ```
  }];
  let options = [Option<"f64Results", "f64-results", "bool", "false", "f32 results of the model become f64, unrounded">,
                 Option<"nudge", "nudge", "double", "0", "how much larger a number is before it is rounded to 16 bits, of itself">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def ReferenceReportScores : Pass<"reference-report-scores", "::mlir::func::FuncOp"> {
  let summary = "Measure scores and live keys in further results";
  let description = [{
    The model gets three results of rank 0: the largest finite magnitude among its scores, and the fewest and the
    most live keys of a row. Scores are what a softmax or an exponential takes, and what that is computed from, back
    to the contractions. heed-check needs them: its bound grows with the scores, and its inputs must hold empty rows.

    ```mlir
    func.func @f(%s: tensor<4x8xf32>) -> (tensor<4x8xf32> {attn.name = "p"}) attributes {attn.model} {
      %p, %live = attn.softmax %s axes([1]) : tensor<4x8xf32>, tensor<4x8xi1>
      return %p : tensor<4x8xf32>
    }
    ```
    becomes
    ```mlir
    ...
      func.func @f(%s: tensor<4x8xf32>) -> (tensor<4x8xf32> {attn.name = "p"},
          tensor<f32> {attn.dims = [], attn.name = "largest score"},
          tensor<f32> {attn.dims = [], attn.name = "fewest live keys"},
          tensor<f32> {attn.dims = [], attn.name = "most live keys"}) attributes {attn.model} {
        ...
        return %p, %largest, %fewest, %most : tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>
    ...
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

#endif
