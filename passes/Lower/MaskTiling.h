//===- MaskTiling.h - tiles of a mask, and who wants tables of it -*- C++ -*-=//
//
#ifndef HEED_PASSES_LOWER_MASKTILING_H
#define HEED_PASSES_LOWER_MASKTILING_H

#include "mlir/IR/Operation.h"

namespace heed {

/// How queries and keys of a mask are cut: full blocks of `block` keys, partial
/// ones of `piece` keys, which divides `block`. The extents are i32 of the
/// pipeline.
struct MaskTiling {
  int64_t tile = 0, block = 0, piece = 0;
  mlir::Value queries, keys;
  /// The first key of each segment of the keys (i32) but the first one: blocks
  /// and pieces of a segment are counted from there on, behind the blocks of
  /// those before, the last of which may be partly empty.
  llvm::SmallVector<mlir::Value, 2> cuts;
  bool sameTables(const MaskTiling &other) const {
    return tile == other.tile && block == other.block && piece == other.piece;
  }
};

/// An attention of the kernel whose pipeline reads tables of its mask: a
/// pipeline of their own computes them before.
struct MaskRequest {
  mlir::Operation *op;
  MaskTiling tiling;
};

} // namespace heed

#endif
