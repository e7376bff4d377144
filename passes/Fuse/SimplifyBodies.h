//===- SimplifyBodies.h - bodies before and after fusing --------*- C++ -*-===//
#ifndef HEED_PASSES_FUSE_SIMPLIFYBODIES_H
#define HEED_PASSES_FUSE_SIMPLIFYBODIES_H

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace heed {

/// A choice between two numbers is as exact after rounding them: a mask that
/// the front end made of 0.0 and -inf in f64 is a condition, not a table.
void roundChoice(mlir::arith::TruncFOp op);

/// expm1(x) + 1 is exp(x), which costs less and loses no digits; so is it where
/// expm1 is one side of a choice, as in elu(x) + 1.
void addOneToExpM1(mlir::arith::AddFOp op);

/// An op that is known to loop over nothing writes no element: its results are
/// what it starts from. A sum over nothing is its neutral element then, and no
/// kernel has loops without an iteration.
void dropEmpty(mlir::Operation *op);

} // namespace heed

#endif
