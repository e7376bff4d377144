//===- HoistedParts.h - what is computed before the steps -------*- C++ -*-===//
//
// Part of attn-block-scans.
#ifndef HEED_PASSES_RECURRENCE_HOISTEDPARTS_H
#define HEED_PASSES_RECURRENCE_HOISTEDPARTS_H

#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/TensorExpr.h"

namespace heed {

class StepBody;

/// Whether \p element is a read whose elements lie apart for the values of \p
/// lane, a variable.
bool readsAcross(ExprRef element, unsigned lane);

/// Parts of the expressions of a recurrence whose columns are each its own, in
/// tensors that are computed before it.
struct HoistedParts {
  mlir::OpBuilder &b;
  Exprs &exprs;
  attn::ScanOp scan;
  StepBody &body;
  llvm::ArrayRef<unsigned> order; ///< variables of the states: at the end the
                                  ///< place in a column, then the column
  llvm::SmallVector<ExprRef> numbers; ///< that stand for what steps compute
  llvm::DenseMap<ExprRef, mlir::Value> stored{};

  ExprRef hoist(ExprRef element);

private:
  bool isFree(ExprRef element, bool mayStep);
  bool isWorthStoring(ExprRef element);
  ExprRef hoistExponent(ExprRef element);
  ExprRef shareFactors(ExprRef element);
  ExprRef store(ExprRef element);
};

} // namespace heed
#endif
