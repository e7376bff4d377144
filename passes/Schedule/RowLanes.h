//===- RowLanes.h - reductions of rows, lane by lane ------------*- C++ -*-===//
#ifndef HEED_PASSES_SCHEDULE_ROWLANES_H
#define HEED_PASSES_SCHEDULE_ROWLANES_H

#include "passes/Schedule/Rewrite.h"

namespace heed {

/// A reduction by lanes: the partial results of \p vectors vectors, of the
/// whole vectors behind them, and of both together, whose lanes the func adds.
struct Lanes {
  mlir::Value partial;
  mlir::Value rest;   ///< null if there are no such vectors
  mlir::Value joined; ///< null if one vector is all
};

/// Splits update 0 of \p func, over one reduction var, in partial results of
/// \p vectors vectors of \p lanes, what is left, and their sum.
Lanes sumByLanes(KernelInfo &kernel, mlir::Value func, mlir::Operation *combine,
                 unsigned term, int64_t lanes, int64_t vectors);

} // namespace heed

#endif
