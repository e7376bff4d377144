//===- DecayProducts.h - what some steps leave of a state -------*- C++ -*-===//
#ifndef HEED_PASSES_RECURRENCE_DECAYPRODUCTS_H
#define HEED_PASSES_RECURRENCE_DECAYPRODUCTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

namespace heed {

namespace attn {
class LinearAttentionOp;
}

/// Powers of \p op's decays, 0 to \p steps, over the first axis, if they are
/// the same in each step; null else. Each is rounded once: in a product of as
/// many the same rounding would come again and again, in all chunks.
mlir::Value decayPowers(mlir::OpBuilder &builder, attn::LinearAttentionOp op,
                        int64_t steps);

/// Products of the decays of some steps; none where nothing decays. They are
/// powers, or multiplied step by step: a decay of 0 is no division by 0, and
/// what is lost stays lost.
///
/// Those of steps are what is left after each of the first \p length steps, or
/// \p before it, with the steps as the first axis; those of the last step are
/// what is left behind it.
class DecayProducts {
public:
  DecayProducts() = default;
  /// Those of \p length steps, whose decays are \p decay. \p key are their keys
  /// where channels of keys decay each by its own, null else. Those of the
  /// state begin with \p start: 1, or 0 where it is zeros, of which 0 is left,
  /// or NaN; 1 if it is null. \p powers: of decays that are the same in each
  /// step, of as many steps or more.
  DecayProducts(mlir::OpBuilder &builder, attn::LinearAttentionOp op,
                mlir::Value decay, mlir::Value key, mlir::OpFoldResult length,
                mlir::Value start, mlir::Value powers);

  explicit operator bool() const { return pairs != nullptr; }

  /// What is left of a key: 0 of one that is not there yet. It is the key
  /// itself where `holdsKeys`, and a factor of it else.
  mlir::Value ofKeys(mlir::OpBuilder &b, mlir::OpFoldResult length,
                     bool before) const;
  mlir::Value lastOfKeys(mlir::OpBuilder &b, mlir::OpFoldResult length) const;
  /// Their axes, as loop dims of the op; its step is that of the keys.
  llvm::ArrayRef<unsigned> keyDims() const { return pairDims; }
  bool holdsKeys() const { return ofChannels; }

  /// What is left of the state before the first step, a factor. `afterStep`: of
  /// \p steps, without that axis.
  mlir::Value ofState(mlir::OpBuilder &b, mlir::OpFoldResult length,
                      bool before) const;
  mlir::Value afterStep(mlir::OpBuilder &b, mlir::OpFoldResult steps) const;
  llvm::ArrayRef<unsigned> stateDims() const { return dims; }

private:
  unsigned keyAxis() const;

  /// Row t: before step t.
  mlir::Value pairs, all;
  llvm::SmallVector<unsigned> pairDims, dims;
  unsigned stepDim = 0;
  bool ofChannels = false;
};

/// Whether channels of keys decay each by its own: pairs of steps are products
/// of three then, which no product of matrices is.
bool decaysByChannel(attn::LinearAttentionOp op);

} // namespace heed
#endif
