//===- TensorOps.h - what a tensor op is made of ----------------*- C++ -*-===//
#ifndef HEED_PASSES_ALGEBRA_TENSOROPS_H
#define HEED_PASSES_ALGEBRA_TENSOROPS_H

#include "mlir/IR/Operation.h"

namespace heed {

/// Whether \p op computes in f64, from indices and sizes: a table, which stays
/// a tensor of its own so that it is computed once. A choice between constants
/// is none.
bool isTable(mlir::Operation *op);

} // namespace heed
#endif
