//===- MaskBounds.h - which keys a tile of queries sees ----------*- C++
//-*-===//
// The `where` of an attention with one query and one key dim, as ranges of keys
// for a tile of queries: attn-solve-masks reports them, the streaming schedule
// turns them into loop bounds.
#ifndef HEED_PASSES_MASKBOUNDS_H
#define HEED_PASSES_MASKBOUNDS_H

#include "dialects/Attn/Dialect.h"
#include "passes/TensorExpr.h"

#include <memory>

namespace heed {

/// A half-open range of keys as expressions; empty where low >= high.
struct KeyRange {
  ExprRef low, high;
};

/// What the ranges are asked for, as index values.
struct MaskTile {
  mlir::Value first, last;   ///< first and last query, last < N, both inside
  mlir::Value queries, keys; ///< N and M
  llvm::SmallVector<mlir::Value> batch; ///< one per batch dim
};

/// Ranges as index values, each within [0, M]: `reach` sorted and disjoint,
/// `hull` from its first to its last key, `full` one range.
struct MaskRanges {
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> reach;
  std::pair<mlir::Value, mlir::Value> hull, full;
};

/// A solved mask.
struct MaskBounds {
  std::shared_ptr<Exprs> exprs;
  unsigned first, last, queries, keys; ///< variables of the expressions
  llvm::SmallVector<unsigned> batch;
  /// No query of the tile sees a key outside of `reach`, every query sees each
  /// key of `full`: unions of pieces that may overlap or be empty.
  llvm::SmallVector<KeyRange, 2> reach, full;
  /// False where some condition was left to the evaluation per element: then
  /// `reach` may hold keys that nobody sees, and `full` lack keys that all see.
  bool exact = true;
  std::string unsolved; ///< the first such condition, as text

  /// Writes the ranges at \p b: `arith` on index, reads of captured tensors by
  /// batch indices alone.
  MaskRanges write(mlir::OpBuilder &b, mlir::Location loc,
                   const MaskTile &tile) const;
  /// The same as a block of its own, for translation: arguments are first,
  /// last, N, M, then the batch indices; its terminator is `attn.yield` of a
  /// dummy, \p ranges holds the results.
  std::unique_ptr<mlir::Block> block(mlir::MLIRContext *context,
                                     mlir::Location loc,
                                     MaskRanges &ranges) const;
  /// An expression as text (Python's), with i0 and i1 for first and last.
  std::string text(ExprRef expr) const;
};

/// Solves the `where` of \p op. Without `where` all keys are full. Fails if the
/// op has not exactly one query and one key dim.
mlir::FailureOr<MaskBounds> solveMask(attn::AttentionOp op);

} // namespace heed
#endif
