//===- SmallM.cpp - versions of a contraction by its number of rows -------===//
//
// Measured: passes/Schedule/README.md, "Few rows of a weight beyond the
// caches".
#include "passes/Schedule/SmallM.h"
#include "passes/Schedule/Rewrite.h"

using namespace mlir;
using namespace heed;

int64_t heed::smallMBlock(int64_t row, const halide::Target &target) {
  return std::max<int64_t>(16, target.l1 / 2 / row / 16 * 16);
}

/// Up to how many rows a product takes about as long as its weight takes to
/// come from memory.
static int64_t smallM(const halide::Target &target) {
  return smallMTiles * chooseTile({}, 1, target.vectorRegisters).rows;
}

/// Bytes of the weights that \p facts' products read whole for each row.
static int64_t weightBytes(const KernelFacts &facts) {
  int64_t bytes = 0;
  for (unsigned number : facts.sums())
    for (const Read &read : facts.computations[number].reductions[0].reads) {
      const Source &source = facts.sources[read.source];
      if (!source.isWeight || read.follows(kRow) || read.operand < 0 ||
          llvm::is_contained(source.extents, std::nullopt))
        continue;
      int64_t size = source.elementBytes;
      for (KnownExtent extent : source.extents)
        size *= *extent;
      bytes += size;
    }
  return bytes;
}

RowVersions heed::contractionVersions(const KernelFacts &facts,
                                      const halide::Target &target) {
  if (!facts.isContraction() || facts.isPartial || !facts.rowArgument)
    return {};
  // Only the rows are not known.
  for (const Computation &c : facts.computations)
    if (c.rank() != 2 || !c.extents[kColumn] || c.extents[kRow] ||
        c.results != 1)
      return {};
  int64_t bytes = weightBytes(facts);
  if (bytes <= target.l2 / 4)
    return {};
  RowVersion one{"_one", 1, /*isOneRow=*/true};
  if (bytes <= 2 * target.l2)
    return {{one}, RowCount::Any};
  RowVersion small{"_few", smallM(target)};
  small.rows = RowCount::Small;
  return {{one, small}, RowCount::Large};
}

int64_t heed::streamBlock(int64_t terms) {
  for (int64_t size = std::min(longestSum, terms / streamsOfRow) / 16 * 16;
       size >= 64; size -= 16)
    if (terms % (streamsOfRow * size) == 0)
      return size;
  return 0;
}
