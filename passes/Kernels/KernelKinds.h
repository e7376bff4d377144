//===- KernelKinds.h - what an op of a model is as a kernel -----*- C++ -*-===//
#ifndef HEED_PASSES_KERNELS_KERNELKINDS_H
#define HEED_PASSES_KERNELS_KERNELKINDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringMap.h"

namespace heed {

enum class KernelKind {
  Elementwise,
  Row,
  Contraction,
  Softmax,
  Attention,
  RowBlock,
  Recurrence,
  ElementScan,
  SumScan,
  TriangularSolve,
  StateStep
};

/// As in the attribute attn.kind.
llvm::StringRef nameOf(KernelKind kind);

/// \p op as a kernel of its own.
KernelKind kernelKindOf(mlir::Operation *op);

/// Whether \p op is cloned into each kernel that uses it instead of being
/// handed over. Tables of constants are not.
bool isCheap(mlir::Operation *op);

/// Whether \p op is tensor mathematics, which must not stay in host code.
bool isCompute(mlir::Operation *op);

/// Marks sums over windows that have as many steps as there are rows.
void markLongWindows(mlir::func::FuncOp model);

/// Equal kernels are one, whatever their names are: \p kernel enters \p symbols
/// under \p name, or is erased if \p known has its like, which is returned.
mlir::func::FuncOp shareKernel(mlir::func::FuncOp kernel, llvm::StringRef name,
                               llvm::StringMap<mlir::func::FuncOp> &known,
                               mlir::SymbolTable &symbols);

} // namespace heed

#endif
