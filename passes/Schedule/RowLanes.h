//===- RowLanes.h - reductions of rows, lane by lane ------------*- C++ -*-===//
#ifndef HEED_PASSES_SCHEDULE_ROWLANES_H
#define HEED_PASSES_SCHEDULE_ROWLANES_H

#include "dialects/Halide/Target.h"
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

/// Splits update 0 of \p func, over one reduction var, in \p lanes sums, each
/// of every lanes-th term, and their sum. Each takes a multiple of \p together
/// terms; behind the end a sum adds nothing, and an extremum sees the last term
/// again. Returns the sums, which are called as
/// \p func with \p suffix and have a first dim "lane".
mlir::Value sumInStrides(KernelInfo &kernel, mlir::Value func,
                         llvm::StringRef suffix, int64_t lanes,
                         int64_t together);

/// Whether consecutive elements of the reduction are consecutive in memory in
/// some read; but not if that is the same for all columns, and another one has
/// consecutive columns: of a vector times a matrix that is the larger one.
bool reducesInnermost(const Computation &c, int64_t lanes);

/// A kernel of rows: in the rows of an output of \p inner more dims there are
/// reductions; with \p columns these add what lies a row apart.
struct RowsPlan {
  size_t inner;
  bool columns;
};

/// How \p facts are a kernel of rows, if they are; \p lanes as of
/// reducesInnermost.
std::optional<RowsPlan> planRows(const KernelFacts &facts, int64_t lanes);

/// Computes \p func, a reduction of a row, in loop \p at of \p outFunc, by
/// lanes where it is long enough.
void scheduleLaneSum(mlir::OpBuilder &b, KernelInfo &kernel, mlir::Value func,
                     mlir::Value outFunc, llvm::StringRef at,
                     const halide::Target &target);

/// Computes \p sum in loop \p at of \p outFunc, \p vectors of \p lanes of its
/// first dim side by side inside of the loop over terms, and \p block, the sums
/// of its blocks (sumByBlocks), or null, in it.
void scheduleColumnSum(mlir::OpBuilder &b, KernelInfo &kernel, mlir::Value sum,
                       mlir::Value block, mlir::Value outFunc,
                       llvm::StringRef at, int64_t lanes, int64_t vectors);

} // namespace heed

#endif
