//===- StepBody.h - what a step computes, as expressions --------*- C++ -*-===//
#ifndef HEED_PASSES_RECURRENCE_STEPBODY_H
#define HEED_PASSES_RECURRENCE_STEPBODY_H

#include "passes/Algebra/TensorExpr.h"

namespace heed {

namespace attn {
class ScanOp;
}

/// The body of a recurrence, read as expressions of its step, of its states and
/// of what stands outside.
class StepBody {
public:
  StepBody(attn::ScanOp scan, Exprs &exprs);

  bool isInside(mlir::Value value) {
    return body.isAncestor(value.getParentRegion());
  }
  bool isStep(ExprRef e) {
    return e->kind == ExprKind::Scalar && e->value == step;
  }
  /// \p element with what the body computes seen through, but for reads of
  /// \p kept. Null where another state, or what is no expression, enters.
  ExprRef open(ExprRef element, llvm::ArrayRef<mlir::Value> kept = {});

private:
  ExprRef number(mlir::Value value);

  mlir::Region &body;
  mlir::Value step;
  Exprs &exprs;
};

/// Whether steps of \p scan do nothing but compute, and its tensors may have
/// elements: there is no slice of one that is known to have none.
bool isPlain(attn::ScanOp scan);

} // namespace heed
#endif
