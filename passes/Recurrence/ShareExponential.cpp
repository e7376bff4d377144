//===- ShareExponential.cpp - one exponential in place of two -------------===//
#include "passes/Recurrence/ShareExponential.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

/// The maximum of two that \p e, the exponential of one of them less it, has;
/// and which of them. Null if it is something else.
static ExprRef maximumOf(ExprRef e, unsigned &which) {
  if (!e->isOp("math.exp") || !e->operand(0)->isOp("arith.subf"))
    return nullptr;
  ExprRef of = e->operand(0)->operand(0), top = e->operand(0)->operand(1);
  if (!top->isOp("arith.maximumf") || top->operand(0) == top->operand(1))
    return nullptr;
  for (which = 0; which < 2; ++which)
    if (top->operand(which) == of)
      return top;
  return nullptr;
}

void heed::shareExponentials(Exprs &exprs, SmallVectorImpl<ExprRef> &elements) {
  DenseMap<ExprRef, unsigned> seen;
  unsigned which = 0;
  for (ExprRef element : elements)
    Exprs::walk(element, [&](ExprRef e) {
      if (ExprRef top = maximumOf(e, which))
        seen[top] |= 1u << which;
    });
  auto shared = [&](ExprRef e) -> ExprRef {
    ExprRef top = maximumOf(e, which);
    if (!top || seen.lookup(top) != 3)
      return nullptr;
    Type type = e->type;
    ExprRef least = exprs.op("arith.minimumf", type, top->operands);
    ExprRef small = exprs.op("math.exp", type,
                             {exprs.op("arith.subf", type, {least, top})});
    // exp(0), but for an infinity: NaN, as inf - inf is.
    ExprRef one = exprs.op("arith.addf", type,
                           {exprs.constant(FloatAttr::get(type, 1.0)),
                            exprs.op("arith.subf", type, {top, top})});
    bool isOther = mutated("block-scans.other-exponential");
    ExprRef isTop =
        exprs.compare(arith::CmpFPredicate::OEQ,
                      top->operand(isOther ? 1 - which : which), top);
    return exprs.select(isTop, one, small, /*guard=*/false);
  };
  for (ExprRef &element : elements)
    element = exprs.rewrite(element, shared);
}
