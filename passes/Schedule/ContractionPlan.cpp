//===- ContractionPlan.cpp - which kernels are contractions ---------------===//
//
// Sums of products over one A, whose rows A has and whose columns B has.
#include "passes/Schedule/ContractionPlan.h"

using namespace mlir;
using namespace heed;

/// The rows of \p c: the dim before the columns; where both A and B have that
/// one (products of a batch side by side, y[n, m, d] = sum_r A[n, m, r] *
/// B[m, r, d]), the longest one that A alone has.
static unsigned rowOf(const Computation &c) {
  unsigned best = kRow;
  auto length = [&](unsigned dim) {
    return c.extents[dim].value_or(std::numeric_limits<int64_t>::max());
  };
  for (unsigned dim = kRow; dim < c.rank(); ++dim) {
    bool isRow = !columnReads(c.reductions[0], dim).empty();
    if (isRow && dim == kRow)
      return kRow;
    if (isRow && (best == kRow || length(dim) > length(best)))
      best = dim;
  }
  return best;
}

std::optional<ContractionPlan> heed::planContraction(const KernelFacts &facts) {
  SmallVector<unsigned> sums = facts.sums();
  if (sums.empty() ||
      (sums.size() > 1 && !(facts.isContraction() && facts.hasAlikeSums)) ||
      (sums.size() == 1 && facts.outputs.size() != 1))
    return std::nullopt;
  for (unsigned number : sums) {
    const Computation &c = facts.computations[number];
    if (c.reductions.size() != 1 || c.reductions[0].isGuarded ||
        c.reductions[0].isScattered || c.reductions[0].extents.empty() ||
        c.rank() < 2 || c.results != 1 || !c.reads.empty())
      return std::nullopt;
    // Only an epilogue at the same coordinates keeps tiles in step.
    if (!facts.isReadInPlace(number))
      return std::nullopt;
  }
  const Computation &first = facts.computations[sums[0]];
  for (unsigned output : facts.outputs)
    if (facts.computations[output].rank() != first.rank())
      return std::nullopt;
  // Columns past the end are read from panels alone, and no row past the end
  // is.
  unsigned row = rowOf(first);
  ContractionPlan plan{int64_t(sums.size()), row,
                       columnReads(first.reductions[0], row)};
  if (plan.columns.empty())
    return std::nullopt;
  return plan;
}
