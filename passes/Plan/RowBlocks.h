//===- RowBlocks.h - scores that stay in a tile -----------------*- C++ -*-===//
#ifndef HEED_PASSES_PLAN_ROWBLOCKS_H
#define HEED_PASSES_PLAN_ROWBLOCKS_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"

namespace heed {

/// On operations that attn-form-kernels puts in one kernel of the kind "row
/// block": the number of their group, an i64.
inline constexpr llvm::StringLiteral kRowBlockAttr = "attn.row_block";

/// Groups of operations of \p block, each in program order and ending with a
/// product with values, or a softmax whose weights are stored: all work on
/// pairs of a query and a key, share loops
/// over queries, and are read by later ones of the group alone. Groups are
/// disjoint.
llvm::SmallVector<llvm::SmallVector<mlir::Operation *>>
findRowBlocks(mlir::Block &block);

} // namespace heed

#endif
