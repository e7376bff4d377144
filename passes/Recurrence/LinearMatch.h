//===- LinearMatch.h - a linear attention that was found --------*- C++ -*-===//
#ifndef HEED_PASSES_RECURRENCE_LINEARMATCH_H
#define HEED_PASSES_RECURRENCE_LINEARMATCH_H

#include "passes/Algebra/Products.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace heed {

namespace attn {
class LinearAttentionOp;
class ScanOp;
} // namespace attn

/// The pass whose parts these are.
inline constexpr llvm::StringLiteral raiseLinearPass =
    "attn-raise-linear-attention";

/// All that `attn.linear_attention` needs, as expressions over loop variables.
struct LinearMatch {
  llvm::SmallVector<unsigned> batch, contract, value;
  unsigned step = 0;
  /// Of batch, step and contract (value) variables; `decay` of batch and step
  /// alone, null if the state stays.
  ExprRef query = nullptr, key = nullptr, values = nullptr, decay = nullptr;
  mlir::Value start; ///< batch, contract and value axes; null for zeros
  bool before = false;

  /// The variables of the state and of the output, as the axes stand.
  llvm::SmallVector<unsigned> stateVars() const;
  llvm::SmallVector<unsigned> outputVars() const;
};

/// Writes the op at \p builder's position. What is no plain read is a tensor of
/// its own.
attn::LinearAttentionOp buildLinearAttention(mlir::OpBuilder &builder,
                                             mlir::Location loc, Exprs &exprs,
                                             const LinearMatch &match);

/// Powers of a decay that is the same in each step: null of one that is not.
struct PowerTables {
  mlir::Value powers;  ///< axes of the decay, and the exponent
  mlir::Value between; ///< axes of the decay, the query's step, the key's: what
                       ///< is left of the key; 0 where the query sees it not
};

/// The tables for chunks of at most \p size steps.
PowerTables makePowerTables(mlir::OpBuilder &builder,
                            attn::LinearAttentionOp op, int64_t size);

/// Operands of the chunk of steps that a linear attention is computed over,
/// each by its map; `state` may be null: it is zero.
struct LinearChunk {
  mlir::Value query, key, value, decay, state;
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

/// Puts linear attentions in the place of \p scan, if its states are such.
void raiseLinearScan(attn::ScanOp scan);

/// Puts a linear attention in the place of \p sum, if it is a sum over what
/// comes before of products of queries, keys and values. Whether it did.
bool raiseCausalSum(mlir::linalg::LinalgOp sum);

/// Puts a recurrence in the place of \p reduction, if it is one over what comes
/// before, or behind, of terms of their own. Whether it did.
bool raisePrefix(mlir::linalg::LinalgOp reduction);

} // namespace heed
#endif
