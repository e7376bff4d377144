//===- MergeRows.h - a batch of rows as one dim of rows ---------*- C++ -*-===//

#ifndef HEED_PASSES_KERNELS_MERGEROWS_H
#define HEED_PASSES_KERNELS_MERGEROWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace heed {

/// Makes the two outermost loops of every operation of \p kernel one, if each
/// tensor there has both as its first axes or neither, and changes the types of
/// the tensors that have: then a weight is read once for all rows, and no tile
/// ends with a sentence. \p arguments, what the host passes, are adapted at
/// \p b. The second function makes what the host's call then returns what it
/// would have returned. Null, and nothing has changed, if loops are not so.
using RestoreResults = std::function<llvm::SmallVector<mlir::Value>(
    mlir::OpBuilder &, mlir::ValueRange)>;
RestoreResults mergeRows(mlir::func::FuncOp kernel, mlir::OpBuilder &b,
                         llvm::SmallVectorImpl<mlir::Value> &arguments);

} // namespace heed

#endif // HEED_PASSES_KERNELS_MERGEROWS_H
