//===- PartsLoop.h - steps taken some at once -------------------*- C++ -*-===//
#ifndef HEED_PASSES_RECURRENCE_PARTSLOOP_H
#define HEED_PASSES_RECURRENCE_PARTSLOOP_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace heed {

/// Writes the steps from `first` on, `length` of them, at the builder's
/// position: what is carried behind them, of what was before.
using WritePart = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::ValueRange carried, mlir::Value first, mlir::OpFoldResult length)>;

/// A loop from \p low to \p high, \p size steps at once and at last as many as
/// are left; it carries \p starts.
mlir::scf::ForOp loopOverParts(mlir::OpBuilder &builder, mlir::Location loc,
                               mlir::Value low, mlir::Value high,
                               mlir::OpFoldResult size, mlir::ValueRange starts,
                               WritePart write);

/// The same, with a loop over the parts of \p size steps, whose length is
/// known, and what is left in a part of its own, or \p oneByOne. Returns what
/// is carried in the end.
llvm::SmallVector<mlir::Value>
loopOverWholeParts(mlir::OpBuilder &builder, mlir::Location loc,
                   mlir::Value low, mlir::Value high, int64_t size,
                   mlir::ValueRange starts, WritePart write,
                   bool oneByOne = false);

} // namespace heed
#endif
