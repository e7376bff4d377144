//===- WriteChunk.h - a linear attention's steps, by products ---*- C++ -*-===//
#ifndef HEED_PASSES_RECURRENCE_WRITECHUNK_H
#define HEED_PASSES_RECURRENCE_WRITECHUNK_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

namespace heed {

namespace attn {
class LinearAttentionOp;
}

/// Powers of a decay that is the same in each step: null of one that is not.
struct PowerTables {
  mlir::Value powers;  ///< axes of the decay, and the exponent
  mlir::Value between; ///< axes of the decay, the query's step, the key's: what
                       ///< is left of the key; 0 where the query sees it not
  mlir::Value erased;  ///< the same of what is erased in place of the query
};

/// The tables for chunks of at most \p size steps.
PowerTables makePowerTables(mlir::OpBuilder &builder,
                            attn::LinearAttentionOp op, int64_t size);

/// Operands of the chunk of steps that a linear attention is computed over,
/// each by its map; `state` may be null: it is zero.
struct LinearChunk {
  mlir::Value query, key, value, decay, erase, state;
  mlir::OpFoldResult length; ///< how many steps it has
  PowerTables tables = {};
  mlir::Value hasState = {}; ///< whether there is one yet; null: always
  bool pairsAlone = false;   ///< no start, not of zeros either
};

/// What the steps of \p chunk make, by products: their outputs, and the state
/// behind them. Each step sees the keys of the chunk up to its own, multiplied
/// by the decays between; and the state, by those before it.
std::pair<mlir::Value, mlir::Value> writeChunk(mlir::OpBuilder &builder,
                                               attn::LinearAttentionOp op,
                                               const LinearChunk &chunk);

} // namespace heed
#endif
