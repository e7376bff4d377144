//===- MaskBounds.h - which keys a tile of queries sees ---------*- C++ -*-===//
// The `where` of an attention with one query and one key dim, solved for the
// keys: attn-solve-masks reports it, the streaming schedule turns it into loop
// bounds and into a class of each block of keys.
//
// Two regions of the plane of queries and keys are asked about: the row of all
// keys for a tile of queries i0..i1, and a block of keys j0..j1 in that row.
// What depends on data is known to both by tables: the least and the greatest
// value that an expression takes over a tile, or over a block.
#ifndef HEED_PASSES_MASKS_MASKBOUNDS_H
#define HEED_PASSES_MASKS_MASKBOUNDS_H

#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/TensorExpr.h"

#include <memory>

namespace heed {

/// The keys of a half-open range, in those blocks for which `test` holds. Low
/// and high are `i64` expressions of a tile, empty where low >= high.
struct MaskPiece {
  ExprRef low, high;
  /// An `i1` of a tile and a block, or null where there is no such condition.
  ExprRef test = nullptr;
  /// Where known, bounds of j - i in the piece: if none can be, it is empty.
  ExprRef offsetLow = nullptr, offsetHigh = nullptr;
};

/// The least and the greatest value of an expression of i (or of j) and batch
/// indices over a tile of queries (over a block of keys). Truth values are
/// ordered: the least is that all hold, the greatest that any does.
struct MaskTable {
  ExprRef value;
  bool ofKeys;
  unsigned least, greatest;    ///< variables that stand for the results
  std::optional<unsigned> odd; ///< of reals: whether any is NaN
};

/// A solved mask. Variables are of type `index`, but for those of tables.
struct MaskBounds {
  std::shared_ptr<Exprs> exprs;
  unsigned query, key;            ///< i and j, in the values of tables
  unsigned queries, keys;         ///< N and M
  unsigned first, last;           ///< i0 and i1
  unsigned blockFirst, blockLast; ///< j0 and j1
  llvm::SmallVector<unsigned> batch;
  llvm::SmallVector<MaskTable> tables;
  /// No query of the tile sees a key outside of `reach`, every query sees each
  /// key of `full`: unions of pieces that may overlap or be empty, each within
  /// [0, M].
  llvm::SmallVector<MaskPiece, 2> reach, full;
  /// False where some condition was left to the evaluation per element: then
  /// `reach` may hold keys that nobody sees, and `full` lack keys that all see.
  bool exact = true;
  std::string unsolved; ///< the first such condition, as text
  /// The plan's `evaluating`: a table says of each tile and piece of keys
  /// whether any query sees a key, found by evaluating the condition.
  bool evaluated = false;
  llvm::SmallVector<unsigned> batchOfCondition; ///< batch dims in `where`

  /// Whether a tile needs more than one range of keys, known from indices,
  /// sizes and batch data: then tables are computed before.
  bool needsTables() const;
  /// Batch dims that a table depends on, or any table or piece.
  llvm::SmallVector<unsigned> batchOf(const MaskTable &table) const;
  llvm::SmallVector<unsigned> batchOfRange() const;
  /// A range that holds all of `reach`, for every data.
  MaskPiece hull() const;
  /// The same keys as one range that needs no tables, none of them full: those
  /// that nobody sees are left to the evaluation per element.
  MaskBounds inOneRange() const;
  /// An expression as text (Python's): i0 and i1 are first and last, j0 and j1
  /// the block's, `tile` and `block` the indices from the one to the other.
  std::string text(ExprRef expr) const;

private:
  std::string textOfVariable(ExprRef variable) const;
  std::string textOfOp(ExprRef expr) const;
};

/// Solves the `where` of \p op. Without `where` all keys are full. Fails if the
/// op has not exactly one query and one key dim.
mlir::FailureOr<MaskBounds> solveMask(attn::AttentionLike op);

/// Writes what was solved as the region `mask` of \p op, where it is IR as any
/// other: it follows what it reads, whatever a pass makes of that.
void writeMask(attn::AttentionLike op, MaskBounds &bounds);

/// What was solved for \p op, `evaluated` as its plan has it. Fails, silently,
/// if nothing was solved.
mlir::FailureOr<MaskBounds> readMask(attn::AttentionLike op);

} // namespace heed
#endif
