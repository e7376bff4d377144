//===- OwnSteps.h - recurrences whose elements are each its own -*- C++ -*-===//
#ifndef HEED_PASSES_RECURRENCE_OWNSTEPS_H
#define HEED_PASSES_RECURRENCE_OWNSTEPS_H

#include "dialects/Attn/Dialect.h"
#include "passes/Recurrence/StepBody.h"

namespace heed {

/// A recurrence whose elements are each its own, over variables that it shares
/// with another.
class OwnSteps {
public:
  OwnSteps(attn::ScanOp scan, Exprs &exprs, llvm::ArrayRef<unsigned> vars)
      : scan(scan), exprs(exprs), vars(vars), body(scan, exprs),
        carried(scan.carried()), yielded(scan.terminator().getStates()) {
    for (unsigned v : vars)
      at.push_back(exprs.var(v));
  }
  bool match();
  /// Whether an element of \p tensor is one of the states.
  bool isAlike(mlir::Value tensor);
  /// The place of the row of step \p step.
  ExprRef placeOf(unsigned row, ExprRef step);
  /// The place of the row before it; the first row has itself.
  ExprRef placeBefore(unsigned row, ExprRef step);
  ExprRef step() { return exprs.scalar(scan.step()); }
  bool isResult(mlir::Value value) { return value.getDefiningOp() == scan; }

  attn::ScanOp scan;
  Exprs &exprs;
  llvm::SmallVector<unsigned> vars;
  StepBody body;
  llvm::SmallVector<mlir::Value> carried, yielded;
  llvm::SmallVector<ExprRef> at;
  llvm::SmallVector<ExprRef> next,
      rows; ///< rows of the states before and after
};

/// Takes what is made element by element of the rows of \p scan, whose elements
/// are each its own, into it, and drops rows that nobody reads then.
void takeRows(attn::ScanOp scan);

} // namespace heed
#endif
