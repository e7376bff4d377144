//===- MergeCalls.h - calls of kernels that become one ----------*- C++ -*-===//
#ifndef HEED_PASSES_KERNELS_MERGECALLS_H
#define HEED_PASSES_KERNELS_MERGECALLS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace heed {

/// Whether moveOperands() would.
bool mayMoveOperands(llvm::ArrayRef<mlir::func::CallOp> group,
                     mlir::func::CallOp next);

/// Moves what \p next reads, but results of \p group, before the first of that,
/// if it may stand there: whether \p next may be computed there.
bool moveOperands(llvm::ArrayRef<mlir::func::CallOp> group,
                  mlir::func::CallOp next);

/// Of the results of \p group, one a call, those that others read.
llvm::SmallVector<mlir::Value>
resultsOf(llvm::ArrayRef<mlir::func::CallOp> group);

/// What the calls of \p group are given, but by each other.
llvm::SmallVector<mlir::Value>
operandsOf(llvm::ArrayRef<mlir::func::CallOp> group);

/// A kernel of the kind that \p like is, with an empty body, for what some
/// calls do with \p operands.
mlir::func::FuncOp emptyKernel(mlir::func::FuncOp like, mlir::Location loc,
                               llvm::ArrayRef<mlir::Value> operands,
                               llvm::ArrayRef<mlir::Value> results);

/// A kernel of the first one's kind that is given \p operands and does what
/// the calls of \p group do, one after the other; it returns \p results.
mlir::func::FuncOp mergedKernel(llvm::ArrayRef<mlir::func::CallOp> group,
                                llvm::ArrayRef<mlir::Value> operands,
                                llvm::ArrayRef<mlir::Value> results,
                                mlir::SymbolTable &symbols);

} // namespace heed

#endif
