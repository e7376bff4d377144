//===- GPUContractionPlan.h - which sums are tiles on GPUs ------*- C++ -*-===//
#ifndef HEED_PASSES_SCHEDULE_GPUCONTRACTIONPLAN_H
#define HEED_PASSES_SCHEDULE_GPUCONTRACTIONPLAN_H

#include "passes/Schedule/KernelInfo.h"

#include "llvm/ADT/SmallPtrSet.h"

namespace heed {

/// A sum that tiles compute.
struct TiledSum {
  unsigned row;  ///< the dim that counts rows; columns are dim 0
  unsigned term; ///< the reduction var that is taken by steps
  llvm::SmallVector<mlir::Value>
      factors; ///< each has rows or columns or neither
};

/// \p f as such a sum: of f32, of two or three factors, with more than a few
/// rows, columns and terms. None if it is something else.
std::optional<TiledSum> planTiledSum(KernelFunc &f);

/// The output in whose grid \p sum may be computed: the only func that reads
/// it, at its own place, and that is in no tile yet. Null if there is none.
mlir::Value consumerOf(KernelInfo &kernel, mlir::Value sum,
                       const llvm::SmallPtrSetImpl<mlir::Value> &done);

} // namespace heed

#endif
