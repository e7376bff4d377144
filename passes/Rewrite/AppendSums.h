//===- AppendSums.h - a sum beside a product as one more row ----*- C++ -*-===//
#ifndef HEED_PASSES_REWRITE_APPENDSUMS_H
#define HEED_PASSES_REWRITE_APPENDSUMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace heed {

/// Where sum_j a[.., j, e] stands beside sum_j a[.., j, e] b[.., j, f], of few
/// known e and f, both become one product with F + 1 rows, the last of which
/// takes 1 in place of b: what is summed is read, and computed, once. The state
/// of linear attention and its normaliser.
void appendSums(mlir::func::FuncOp func);

} // namespace heed

#endif
