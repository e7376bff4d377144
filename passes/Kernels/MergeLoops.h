//===- MergeLoops.h - neighbouring dims of a kernel as one dim --*- C++ -*-===//
//
// The rows of a batch are rows of one matrix: a weight is read once for all of
// them, and no tile ends with a sentence. The columns of heads that lie
// together, z[b, n, h, e] = sum_c x[b, n, c] w[h, e, c], are columns of one
// matrix: without that no schedule of products takes them. Sums over both, o[b,
// n, h, e] w[d, h, e], are one sum.
#ifndef HEED_PASSES_KERNELS_MERGELOOPS_H
#define HEED_PASSES_KERNELS_MERGELOOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace heed {

/// Makes loops \p loop and \p loop + 1 of every operation of \p kernel one, if
/// each tensor there has both as neighbouring axes or neither, and changes the
/// types of the tensors that have. \p arguments, what the host passes, are
/// adapted at \p b. The second function makes what the host's call then returns
/// what it would have returned. Null, and nothing has changed, if loops are not
/// so.
using RestoreResults = std::function<llvm::SmallVector<mlir::Value>(
    mlir::OpBuilder &, mlir::ValueRange)>;
RestoreResults mergeLoops(mlir::func::FuncOp kernel, unsigned loop,
                          mlir::OpBuilder &b,
                          llvm::SmallVectorImpl<mlir::Value> &arguments);

} // namespace heed

#endif // HEED_PASSES_KERNELS_MERGELOOPS_H
