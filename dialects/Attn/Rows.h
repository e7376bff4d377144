//===- Rows.h - rows of tensors ---------------------------------*- C++ -*-===//
//
// A row is what a tensor has at positions of some axes, over the others. MLIR
// lets a slice drop axes of one element, but says by types alone which: where
// there are others of one element, they are dropped by a reshape.
#ifndef HEED_DIALECTS_ATTN_ROWS_H
#define HEED_DIALECTS_ATTN_ROWS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace heed::attn {

/// Where a row lies: offset and size of each axis of the tensor; the size of an
/// axis that the row has not is 1.
struct RowPlace {
  llvm::SmallVector<mlir::OpFoldResult> offsets, sizes;
  llvm::SmallVector<bool> dropped;
};

/// Position \p position of the first axis of \p tensor.
RowPlace firstAxisAt(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                     mlir::OpFoldResult position);

/// The row of \p tensor, of \p type.
mlir::Value readRow(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                    const RowPlace &place, mlir::RankedTensorType type);

/// \p tensor with \p row there.
mlir::Value writeRow(mlir::OpBuilder &b, mlir::Location loc, mlir::Value row,
                     mlir::Value tensor, const RowPlace &place);

/// Whether \p region of \p op, a recurrence, takes a step, \p rank indices and
/// \p taken, and ends with \p ended; else the error names \p constraint.
llvm::LogicalResult verifyStepRegion(mlir::Operation *op, mlir::Region &region,
                                     llvm::StringRef name, unsigned rank,
                                     llvm::ArrayRef<mlir::Type> taken,
                                     llvm::ArrayRef<mlir::Type> ended,
                                     llvm::StringRef constraint);

/// What \p region of a recurrence, over the step, the indices and an element of
/// each of \p taken, makes at \p step, as tensors like \p outs.
mlir::ValueRange computeStep(mlir::OpBuilder &b, mlir::Location loc,
                             mlir::Region &region, mlir::Value step,
                             mlir::ValueRange taken, mlir::ValueRange outs);

} // namespace heed::attn

#endif
