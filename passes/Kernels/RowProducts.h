//===- RowProducts.h - products of rows with a small matrix -----*- C++ -*-===//
//
// out[.., m, n] = sum_r rows[.., m, r] * matrix[.., r, n], where the matrix is
// small and no parameter: the state of linear attention is one. A few rows at a
// time see the whole matrix, so they can be computed in place, and sums over
// them (the normaliser) beside the product.
#ifndef HEED_PASSES_KERNELS_ROWPRODUCTS_H
#define HEED_PASSES_KERNELS_ROWPRODUCTS_H

#include "mlir/IR/Operation.h"

namespace heed {

/// Whether \p op is such a product.
bool isRowProduct(mlir::Operation *op);

/// Whether \p op is sum_r a[.., r, m] * b[.., r, n] of few known m and n, and
/// neither a nor b is a parameter: the state that linear attention sums up.
bool isStateProduct(mlir::Operation *op);

/// Whether \p op is a long sum with a small matrix as its result, and the
/// elements of \p terms are its factors for one row or one column.
bool areTermsOfState(mlir::Operation *op, mlir::Value terms);

/// Whether \p rows are the rows of \p product, a row product, and nothing else
/// in it.
bool areRowsOf(mlir::Operation *product, mlir::Value rows);

/// Whether \p op has one sum, over as many terms, for each row of \p product.
bool isSumOfRows(mlir::Operation *op, mlir::Operation *product);

/// Whether \p user sums along what \p value has one element of for each of its
/// own rows.
bool sumsAlong(mlir::Operation *user, mlir::Value value);

} // namespace heed

#endif
