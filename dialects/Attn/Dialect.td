//===- Dialect.td - the attn dialect ------------------------------------------------------===//
// What upstream lacks to say what an attention model means.

#ifndef HEED_DIALECTS_ATTN_DIALECT_TD
#define HEED_DIALECTS_ATTN_DIALECT_TD

include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Attn_Dialect : Dialect {
  let name = "attn";
  let cppNamespace = "::heed::attn";
  let summary = "The algebra of attention models";
  let description = [{
    Value semantics on ranked tensors. The dialect adds only what upstream lacks: plain index notation is
    `linalg.generic`, control flow is `scf`. An op carries its meaning; its decomposition to upstream ops
    (`attn-decompose`) is the definition of that meaning.

    Discardable attributes: `attn.source` on the module; `attn.model` on a function that is a model's entry;
    `attn.name`, `attn.dims`, `attn.default` on its arguments and results; `attn.kernel` on outlined kernels.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

// What the score of a live key becomes: before it is divided by the row's sum, or, of the maps that have a threshold,
// less what the row is taken less.
def Attn_Map : I32EnumAttr<"Map", "how a score becomes a weight", [
    I32EnumAttrCase<"Exp", 0, "exp">, I32EnumAttrCase<"Sigmoid", 1, "sigmoid">,
    I32EnumAttrCase<"Relu", 2, "relu">, I32EnumAttrCase<"Identity", 3, "identity">,
    I32EnumAttrCase<"Sparsemax", 4, "sparsemax">, I32EnumAttrCase<"Entmax15", 5, "entmax15">]> {
  let cppNamespace = "::heed::attn";
}

#endif
