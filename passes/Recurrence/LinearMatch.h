//===- LinearMatch.h - a linear attention that was found --------*- C++ -*-===//
#ifndef HEED_PASSES_RECURRENCE_LINEARMATCH_H
#define HEED_PASSES_RECURRENCE_LINEARMATCH_H

#include "passes/Algebra/Products.h"

namespace heed {

namespace attn {
class LinearAttentionOp;
}

/// All that `attn.linear_attention` needs, as expressions over loop variables.
struct LinearMatch {
  llvm::SmallVector<unsigned> batch, contract, value;
  unsigned step = 0;
  /// Of batch, step and contract (value) variables; `decay` of all but value
  /// variables, null if the state stays; `erase` null if nothing is erased.
  ExprRef query = nullptr, key = nullptr, values = nullptr, decay = nullptr,
          erase = nullptr;
  mlir::Value start; ///< batch, contract and value axes; null for zeros
  bool before = false, fresh = false;

  /// The variables of the state and of the output, as the axes stand.
  llvm::SmallVector<unsigned> stateVars() const;
  llvm::SmallVector<unsigned> outputVars() const;
};

/// Writes the op at \p builder's position. What is no plain read is a tensor of
/// its own.
attn::LinearAttentionOp buildLinearAttention(mlir::OpBuilder &builder,
                                             mlir::Location loc, Exprs &exprs,
                                             const LinearMatch &match);

/// \p state with its axes in the order \p axes; \p back: in its own, where it
/// has that.
mlir::Value reorderAxes(mlir::OpBuilder &builder, mlir::Location loc,
                        Exprs &exprs, mlir::Value state,
                        llvm::ArrayRef<unsigned> axes, bool back);

} // namespace heed
#endif
