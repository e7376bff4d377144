//===- CallerExtents.h - extents of a kernel at its calls -------*- C++ -*-===//
#ifndef HEED_PASSES_LOWER_CALLEREXTENTS_H
#define HEED_PASSES_LOWER_CALLEREXTENTS_H

#include "mlir/IR/Builders.h"

#include <optional>

namespace heed {

/// Where a caller of a kernel finds the extent of a result's dim: a number, an
/// argument, or an argument's dim.
struct CallerExtent {
  std::optional<int64_t> fixed;
  unsigned argument = 0;
  std::optional<int64_t> axis;
};

/// A size inside a kernel. Fails with an error at the op that hides it.
mlir::FailureOr<CallerExtent> callerSize(mlir::Value value);

/// The extent of axis \p axis of \p value, a tensor inside a kernel.
mlir::FailureOr<CallerExtent> callerExtent(mlir::Value value, int64_t axis);

/// An extent as the caller of a kernel with arguments \p inputs sees it.
mlir::OpFoldResult extentAt(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::ValueRange inputs,
                            const CallerExtent &extent);

} // namespace heed

#endif
