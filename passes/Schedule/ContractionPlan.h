//===- ContractionPlan.h - which kernels are contractions -------*- C++ -*-===//
#ifndef HEED_PASSES_SCHEDULE_CONTRACTIONPLAN_H
#define HEED_PASSES_SCHEDULE_CONTRACTIONPLAN_H

#include "passes/Kernels/KernelFacts.h"

namespace heed {

/// How many sums over one A there are, which dim of the result counts rows, and
/// which reads of their terms follow the columns.
struct ContractionPlan {
  int64_t products;
  unsigned row;
  llvm::SmallVector<unsigned> columns;
};

/// The plan for a kernel with these facts, or nothing.
std::optional<ContractionPlan> planContraction(const KernelFacts &facts);

} // namespace heed

#endif
