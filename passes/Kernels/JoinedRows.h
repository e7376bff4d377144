//===- JoinedRows.h - keys of several parts, read where they lie *- C++ -*-===//
//
// Memory rows, null keys and latents stand before or behind the keys of a
// sequence: `concat` makes one tensor of them. An attention that streams visits
// the keys of one part after the other and reads each part itself, so that
// nothing is copied.
//
//===----------------------------------------------------------------------===//
#ifndef HEED_PASSES_KERNELS_JOINEDROWS_H
#define HEED_PASSES_KERNELS_JOINEDROWS_H

#include "dialects/Attn/Dialect.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace heed {

/// A tensor whose rows along an axis are those of several parts: an
/// elementwise op that chooses by nothing but the row, `if j < c0 then .. else
/// if j < c1 then ..`.
struct JoinedRows {
  /// \p op as one, if it is.
  static std::optional<JoinedRows> of(mlir::Operation *op);

  /// The most rows that part \p part can have, where tensors say so that it
  /// reads by the row.
  std::optional<int64_t> mostRows(unsigned part);
  /// Whether parts of \p other begin where those of this do.
  bool hasCutsOf(const JoinedRows &other) const;

  mlir::linalg::GenericOp op;
  unsigned axis = 0;
  /// The first row of each part but the first one, if the parts before have
  /// fewer: indices from outside of the body.
  llvm::SmallVector<mlir::Value> cuts;
  llvm::SmallVector<mlir::Block *> parts; ///< each yields its element
  mlir::Value chosen; ///< that of all parts, which the body may round
};

/// Gives each attention that reads \p op, joined rows, a copy of its own, if
/// all of its readers are attentions that can read its parts.
void ownJoinedRows(mlir::Operation *op);

/// Empty if \p op, when it streams, can read the parts of \p keys, which is one
/// of its operands; else the reason against it.
std::string whyNotInParts(attn::AttentionOp op, mlir::Value keys);

} // namespace heed

#endif
