//===- SettleFactors.h - factors that are computed once ---------*- C++ -*-===//
#ifndef HEED_PASSES_REWRITE_SETTLEFACTORS_H
#define HEED_PASSES_REWRITE_SETTLEFACTORS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"

namespace heed {

/// Replaces the sum of products \p root by one whose expensive factors are
/// tensors of their own, if there is one that the sum's loops use many times:
/// exp(q[i, e]) in sum_e exp(q[i, e]) s[e, f] is computed once for all f. Only
/// factors that have as many elements as an array that they read. False if
/// nothing changed; \p erased collects what is gone.
bool settleFactors(mlir::Operation *root,
                   llvm::DenseSet<mlir::Operation *> &erased);

} // namespace heed

#endif
