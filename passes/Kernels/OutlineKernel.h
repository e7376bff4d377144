//===- OutlineKernel.h - a cluster of ops becomes a kernel ------*- C++ -*-===//
#ifndef HEED_PASSES_KERNELS_OUTLINEKERNEL_H
#define HEED_PASSES_KERNELS_OUTLINEKERNEL_H

#include "passes/Kernels/KernelKinds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringMap.h"

namespace heed {

/// Ops that are to be one kernel.
struct Cluster {
  /// In program order; the last one defines the kernel's results.
  llvm::SmallVector<mlir::Operation *> ops;
  KernelKind kind;
};

/// Replaces the ops of \p cluster by a call of a private function that computes
/// them, \p model's, or of one in \p known that computes the same.
void outlineKernel(const Cluster &cluster, mlir::func::FuncOp model,
                   llvm::StringMap<mlir::func::FuncOp> &known,
                   mlir::SymbolTable &symbols);

} // namespace heed

#endif
