//===- Families.h - schedule families, as everybody sees them ---*- C++ -*-===//
//
// A family says of a kernel, by facts alone, whether it is one of its own and
// how well it would do; the best one is asked to schedule it. Passes that form
// kernels ask the families, too, what may stand in one kernel. A family is one
// file in Schedule/ and one line in Schedule/Families.def.
#ifndef HEED_PASSES_KERNELS_FAMILIES_H
#define HEED_PASSES_KERNELS_FAMILIES_H

#include "dialects/Halide/Target.h"
#include "passes/Kernels/KernelFacts.h"

#include <functional>

namespace heed {

struct KernelInfo;

/// What a family gains, from the least to the most: of two families that match
/// the one that is further down takes the kernel.
enum class Benefit {
  Fallback,     ///< right, no more
  Rows,         ///< a row is read from memory once, whatever is done with it
  Tiles,        ///< register tiles of a product, from packed panels
  Unpacked,     ///< ... that need no packing, which would take longer
  Terms,        ///< ... and compute the terms of a long sum once, in blocks
  RowsOfTiles,  ///< ... and compute the rows of a product once, with their sums
  OnePass,      ///< nothing is summed: everything is read and written once
  WholeRowBlock ///< scores never leave a tile of queries
};

/// What a family would do with a kernel.
struct FamilyPlan {
  Benefit benefit;
  /// Writes the schedule. False, and at most outputs have become funcs of their
  /// own, if the pipeline has no place for it: the next best family follows.
  std::function<bool(KernelInfo &)> schedule;
};

/// A pipeline of its own for calls with few rows.
struct RowVersion {
  std::string suffix;    ///< of its name
  int64_t mostRows;      ///< in its calls
  bool isOneRow = false; ///< its types say that there is one row
  RowCount rows = RowCount::Any;
  /// Arguments that have to be inputs of the model in its calls.
  llvm::SmallVector<unsigned> inputs = {};
};
/// Versions for few rows, the fewest first, and what the others then know.
struct RowVersions {
  llvm::SmallVector<RowVersion> versions;
  RowCount others = RowCount::Any;
};

struct Family {
  llvm::StringLiteral name;
  /// The plan for a kernel with these facts, or nothing.
  std::optional<FamilyPlan> (*match)(const KernelFacts &facts,
                                     const halide::Target &target);
  /// Whether source \p producer of computation \p product, which costs much to
  /// compute, may stand in its kernel: each element is then computed once.
  bool (*computesOnce)(const KernelFacts &facts, unsigned product,
                       unsigned producer) = nullptr;
  /// Whether computation \p sum, a reduction of rows, may stand in the kernel
  /// of computation \p product.
  bool (*takesBeside)(const KernelFacts &facts, unsigned product,
                      unsigned sum) = nullptr;
  /// Whether several kernels that make a new state and sums over it may be this
  /// one.
  bool (*takesStep)(const KernelFacts &facts,
                    const halide::Target &target) = nullptr;
  /// Pipelines for calls with few rows.
  RowVersions (*versions)(const KernelFacts &facts,
                          const halide::Target &target) = nullptr;
};

/// All families (Schedule/Families.def) of processors, or of GPUs.
llvm::ArrayRef<Family> families(bool ofGPUs);

} // namespace heed

#endif
