//===- DecayProducts.h - what some steps leave of a state -------*- C++ -*-===//
#ifndef HEED_PASSES_RECURRENCE_DECAYPRODUCTS_H
#define HEED_PASSES_RECURRENCE_DECAYPRODUCTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

namespace heed {

namespace attn {
class LinearAttentionOp;
}

/// Products of the decays of some steps; null where nothing decays. They are
/// multiplied step by step: a decay of 0 is no division by 0, and what is lost
/// stays lost.
class DecayProducts {
public:
  DecayProducts() = default;
  /// Those of \p length steps, whose decays are \p decay.
  DecayProducts(mlir::OpBuilder &builder, attn::LinearAttentionOp op,
                mlir::Value decay, mlir::OpFoldResult length);

  explicit operator bool() const { return pairs != nullptr; }

  // Of the first \p length steps, as tensors with an axis for each batch, then
  // for each contract dim that the decay has. Those of steps are what is left
  // after each, or \p before it.

  /// What is left of a key: an axis of steps, the first, and one of keys,
  /// behind the batch axes. 0 of a key that is not there yet.
  mlir::Value ofKeys(mlir::OpBuilder &b, mlir::OpFoldResult length,
                     bool before) const;
  /// What is left of the state before the first step: an axis of steps, the
  /// first.
  mlir::Value ofState(mlir::OpBuilder &b, mlir::OpFoldResult length,
                      bool before) const;
  /// The same behind the last step.
  mlir::Value lastOfKeys(mlir::OpBuilder &b, mlir::OpFoldResult length) const;
  mlir::Value lastOfState(mlir::OpBuilder &b, mlir::OpFoldResult length) const;

private:
  /// Row t: before step t.
  mlir::Value pairs, all;
  unsigned keyAxis = 0;
};

} // namespace heed
#endif
