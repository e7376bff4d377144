//===- Hoisting.h - what is the same in every call runs once ----*- C++ -*-===//
//
// Moves work of the models that is the same in every call to the function with
// attn.init, which runs when the model is opened (docs/ir.md, section 3). What
// is work, the passes say: attn-hoist-weights of tensor mathematics,
// attn-hoist-packs of calls of pipelines.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_PASSES_PLAN_HOISTING_H
#define HEED_PASSES_PLAN_HOISTING_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"

namespace heed {

struct HoistedWork {
  llvm::StringLiteral pass; ///< in whose name remarks are made
  /// Whether an op computes the elements of tensors, rather than only looking
  /// at one in another way.
  bool (*computes)(mlir::Operation *op);
  /// Whether what an op computes is cheaper to compute again than to read.
  bool (*isCheap)(mlir::Operation *op);
};

/// Moves what `work.computes` of every model in \p module to init, each with
/// what it reads, if its results have static shapes; the models read what is
/// kept. In loops with constant bounds there is an instance for each turn.
void hoist(mlir::ModuleOp module, const HoistedWork &work);

/// Of all elements of \p tensor, whose shape is static.
int64_t bytesOf(mlir::RankedTensorType tensor);

} // namespace heed

#endif // HEED_PASSES_PLAN_HOISTING_H
