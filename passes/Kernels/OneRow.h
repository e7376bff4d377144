//===- OneRow.h - products of one row, or few -------------------*- C++ -*-===//
#ifndef HEED_PASSES_KERNELS_ONEROW_H
#define HEED_PASSES_KERNELS_ONEROW_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include <optional>

namespace heed {

/// The rows of a contraction, whose number only a call knows.
struct ProductRows {
  unsigned argument; ///< that is the number of rows
  int64_t bytes;     ///< of the weights
};
/// Those of \p kernel if it is a product with weights (arguments in \p fixed).
std::optional<ProductRows> rowsOfProduct(mlir::func::FuncOp kernel,
                                         const llvm::BitVector &fixed);

/// A product with rows of arguments that nobody packed.
struct DotProducts {
  unsigned rows; ///< the argument that is the number of rows
  llvm::SmallVector<unsigned> matrices;
  std::optional<int64_t> terms; ///< of the shortest sum, if known
};
/// \p kernel, if it is one; of its arguments \p fixed are weights.
std::optional<DotProducts> dotProductsOf(mlir::func::FuncOp kernel,
                                         const llvm::BitVector &fixed);

/// Gives the results of such a kernel one row.
void makeOneRow(mlir::func::FuncOp kernel);

} // namespace heed

#endif
