//===- WriteChunk.h - a linear attention's steps, by products ---*- C++ -*-===//
#ifndef HEED_PASSES_RECURRENCE_WRITECHUNK_H
#define HEED_PASSES_RECURRENCE_WRITECHUNK_H

#include "passes/Recurrence/DecayProducts.h"

namespace heed {

/// Operands of the chunk of steps that a linear attention is computed over,
/// each by its map; `state` may be null: it is zero.
struct LinearChunk {
  mlir::Value query, key, value, erase, state;
  mlir::Value longState = {}; ///< the state as f64, if it is carried as that
  DecayProducts decays;       ///< of its steps, or of more
  mlir::OpFoldResult length;  ///< how many steps it has
  mlir::Value hasState = {};  ///< whether there is one yet; null: always
  mlir::Value sameDecay = {}; ///< if it is the same in each step
  bool pairsAlone = false;    ///< no state
  mlir::Value left = {}; ///< of a key, over batch, step and key: for decays
  mlir::Value seen = {}; ///< which keys are, over batch and key; null: all
  /// What its steps make of a state of zeros, where that is computed already.
  mlir::Value ownOutput = {}, ownState = {};
};

/// What the steps of \p chunk make, by products: their outputs, and the state
/// behind them, in f64 if that is carried so. Each step sees the keys of the
/// chunk up to its own, multiplied by the decays between; and the state, by
/// those before it.
std::pair<mlir::Value, mlir::Value> writeChunk(mlir::OpBuilder &builder,
                                               attn::LinearAttentionOp op,
                                               const LinearChunk &chunk);

} // namespace heed
#endif
