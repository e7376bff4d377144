//===- HeadSizes.h - attention of heads whose size a call knows -*- C++ -*-===//
#ifndef HEED_PASSES_LOWER_HEADSIZES_H
#define HEED_PASSES_LOWER_HEADSIZES_H

#include "dialects/Halide/HalideDialect.h"
#include "dialects/Halide/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace heed {

/// A kernel whose attention streams, and the calls that are to be its.
struct SizedKernel {
  mlir::func::FuncOp kernel;
  llvm::SmallVector<halide::CallOp> calls;
};

/// Of \p kernel, if all that it has is an attention that does not stream since
/// the size of its heads is not known: copies of it for the usual sizes, beside
/// it, and \p calls of these in branches for calls with heads of that size.
/// Fails with an error where callers do not know the size.
mlir::FailureOr<llvm::SmallVector<SizedKernel>>
streamBySize(mlir::func::FuncOp kernel, llvm::ArrayRef<halide::CallOp> calls,
             const halide::Target &target);

} // namespace heed

#endif
