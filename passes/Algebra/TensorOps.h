//===- TensorOps.h - what a tensor op is made of ----------------*- C++ -*-===//
#ifndef HEED_PASSES_ALGEBRA_TENSOROPS_H
#define HEED_PASSES_ALGEBRA_TENSOROPS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace heed {

/// Whether \p op computes in f64, from indices and sizes: a table, which stays
/// a tensor of its own so that it is computed once. A choice between constants
/// is none.
bool isTable(mlir::Operation *op);

/// \p tensor as one of \p type, which says more or less of its extents.
mlir::Value castTo(mlir::OpBuilder &b, mlir::Value tensor, mlir::Type type);

} // namespace heed
#endif
