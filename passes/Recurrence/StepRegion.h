//===- StepRegion.h - the regions of attn.element_scan ----------*- C++ -*-===//
#ifndef HEED_PASSES_RECURRENCE_STEPREGION_H
#define HEED_PASSES_RECURRENCE_STEPREGION_H

#include "passes/Algebra/TensorExpr.h"

namespace heed {

/// Writes what a step makes of one element of the states.
struct StepRegion {
  mlir::OpBuilder &b;
  mlir::Location loc;
  Exprs &exprs;
  mlir::Value step; ///< as expressions know it
  unsigned rank;    ///< of the states

  /// Fills \p region, whose arguments are the step, the indices, and an element
  /// of each of \p tensors, with \p elements: each over its own of \p vars, or
  /// all over the first, at which they read the tensors.
  void write(mlir::Region &region, llvm::ArrayRef<ExprRef> elements,
             llvm::ArrayRef<llvm::SmallVector<unsigned>> vars,
             llvm::ArrayRef<mlir::Value> tensors);
};

} // namespace heed
#endif
