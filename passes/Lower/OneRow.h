//===- OneRow.h - products of one row, or few -------------------*- C++ -*-===//
#ifndef HEED_PASSES_LOWER_ONEROW_H
#define HEED_PASSES_LOWER_ONEROW_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include <optional>

namespace heed {

/// If \p kernel is a contraction of rows, whose number only a call knows, with
/// weights (arguments in \p fixed): the argument that is the number of rows.
struct ProductRows {
  unsigned argument;
  int64_t bytes; ///< of the weights
};
std::optional<ProductRows> rowsOfProduct(mlir::func::FuncOp kernel,
                                         const llvm::BitVector &fixed);

/// Gives the results of such a kernel one row.
void makeOneRow(mlir::func::FuncOp kernel);

} // namespace heed

#endif
