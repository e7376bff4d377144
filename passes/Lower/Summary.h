//===- Summary.h - what a call of a model takes, as a remark ----*- C++ -*-===//
#ifndef HEED_PASSES_LOWER_SUMMARY_H
#define HEED_PASSES_LOWER_SUMMARY_H

#include "dialects/Halide/HalideDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace heed {

/// Each kernel with the calls of it.
using KernelCalls =
    llvm::MapVector<mlir::Operation *, llvm::SmallVector<halide::CallOp>>;

/// The remark "summary" for \p model, all of whose kernels are in \p callers,
/// as functions: how many it calls, operations and bytes of a call, and the
/// elements of each tensor that one kernel writes and another reads, largest
/// first. Its arguments have the keys kernels, flops, bytes and, once for each
/// such tensor, stored.
void remarkSummary(mlir::func::FuncOp model, const KernelCalls &callers);

} // namespace heed

#endif // HEED_PASSES_LOWER_SUMMARY_H
