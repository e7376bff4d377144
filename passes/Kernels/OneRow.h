//===- OneRow.h - a kernel for results of one row ---------------*- C++ -*-===//
#ifndef HEED_PASSES_KERNELS_ONEROW_H
#define HEED_PASSES_KERNELS_ONEROW_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace heed {

/// Gives the results of \p kernel, all of two dims, one row in their types:
/// what generates text token by token multiplies one row with every weight.
void makeOneRow(mlir::func::FuncOp kernel);

} // namespace heed

#endif
