//===- ElementCost.h - what an element costs to compute again --*- C++ -*-===//
//
// By which passes decide what is computed again rather than stored. What a call
// of a kernel costs, which profiles show, is Plan/Cost.h; how many products an
// order takes, which sizes decide, is Rewrite/ProductChain.h.
//
//===----------------------------------------------------------------------===//
#ifndef HEED_PASSES_ALGEBRA_ELEMENTCOST_H
#define HEED_PASSES_ALGEBRA_ELEMENTCOST_H

#include "mlir/IR/Operation.h"

namespace heed {

/// What the body of an op, or of a func, does for an element.
struct OperationCount {
  unsigned operations = 0; ///< of arith, but constants
  unsigned functions = 0;  ///< of math
  unsigned divisions = 0;  ///< of real numbers, among the operations
  unsigned doubles = 0;    ///< in f64, among the operations
  /// Of real numbers, among the operations: but casts, choices and divisions.
  unsigned reals = 0;
  /// Of real numbers, among the functions: but those of one instruction.
  unsigned longFunctions = 0;

  /// In operations; a function takes some eight.
  unsigned cost() const { return operations + 8 * functions; }
  /// The same where each counts as it takes a vector: a division of 16 lanes
  /// has the time of a function (Schedule/README.md, "Rows and elementwise").
  unsigned costInVectors() const { return cost() + 7 * divisions; }
  /// The same of a table, whose f64 has no vectors.
  unsigned costOfTable() const { return cost() + 7 * doubles; }
};
OperationCount countOperations(mlir::Operation *op);

/// An element of at most so many operations is computed again by each reader:
/// that takes less than a store and a load.
constexpr unsigned mostCheapOperations = 4;

} // namespace heed

#endif // HEED_PASSES_ALGEBRA_ELEMENTCOST_H
