//===- Windows.h - loops that meet in one place -----------------*- C++ -*-===//
//
// What is read at i + t, for a place i and a step t of a window, is read for
// several places: it is computed once, not for each (Fuse), and stays near
// while they are computed (Schedule). 64 h + e where e < 64 is no window.
//
//===----------------------------------------------------------------------===//
#ifndef HEED_PASSES_ALGEBRA_WINDOWS_H
#define HEED_PASSES_ALGEBRA_WINDOWS_H

#include "passes/Algebra/TensorExpr.h"

#include "llvm/ADT/SmallBitVector.h"

namespace heed {

/// The loops that meet in \p index, a sum of loops times numbers. \p loopOf
/// says which loop a value is, if it is one; \p extents has theirs, where
/// known.
llvm::SmallBitVector
windowOf(mlir::Value index, llvm::ArrayRef<std::optional<int64_t>> extents,
         llvm::function_ref<std::optional<unsigned>(mlir::Value)> loopOf);

/// Whether one of the loops \p steps meets one of \p places in \p index.
bool moveWindow(Exprs &exprs, ExprRef index, llvm::ArrayRef<unsigned> places,
                llvm::ArrayRef<unsigned> steps);

} // namespace heed

#endif // HEED_PASSES_ALGEBRA_WINDOWS_H
