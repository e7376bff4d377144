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
    %p, %live = attn.softmax %s axes([1]) : tensor<4x8xf32>, tensor<4x8xi1>
    // becomes: a row maximum, exponentials, a row sum, a quotient
    %m = linalg.generic {...} ins(%s) outs(%inf) { ... arith.maximumf ... }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

#endif
