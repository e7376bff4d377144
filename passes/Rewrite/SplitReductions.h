//===- SplitReductions.h - reductions over dims that lie apart --*- C++ -*-===//
#ifndef HEED_PASSES_REWRITE_SPLITREDUCTIONS_H
#define HEED_PASSES_REWRITE_SPLITREDUCTIONS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"

namespace heed {

/// Replaces a reduction over several dims, of what lies apart in the arrays
/// that it reads, by one over those that end an array, and one over the
/// others: max over (j, r) of w[j, r] - n[j] is the maximum of the rows'
/// maxima. Dims that are neighbours in all arrays are one dim by themselves.
/// False if nothing changed; \p erased collects what is gone.
bool splitReduction(mlir::Operation *root,
                    llvm::DenseSet<mlir::Operation *> &erased);

} // namespace heed

#endif
