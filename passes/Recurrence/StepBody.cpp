//===- StepBody.cpp - what a step computes, as expressions ----------------===//
#include "passes/Recurrence/StepBody.h"
#include "dialects/Attn/Dialect.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace heed {

StepBody::StepBody(attn::ScanOp scan, Exprs &exprs)
    : body(scan.getBody()), step(scan.step()), exprs(exprs) {}

/// A number that the body computes, as an expression of the step and of what
/// is outside. Null if it is none.
ExprRef StepBody::number(Value value) {
  if (value == step || !isInside(value))
    return exprs.scalar(value);
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() || op->getNumResults() != 1 ||
      !isMemoryEffectFree(op))
    return nullptr;
  if (mutated("batch-steps.forget-numbers"))
    return exprs.index(0);
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return exprs.constant(cast<TypedAttr>(constant.getValue()));
  SmallVector<ExprRef> operands;
  for (Value operand : op->getOperands()) {
    if (isa<ShapedType>(operand.getType()))
      return nullptr;
    operands.push_back(number(operand));
    if (!operands.back())
      return nullptr;
  }
  return exprs.op(op->getName(), op->getAttrDictionary(), value.getType(),
                  operands);
}

ExprRef StepBody::open(ExprRef element, ArrayRef<Value> kept) {
  element = exprs.expandReads(element, [&](ExprRef read) {
    return isInside(read->value) && !llvm::is_contained(kept, read->value);
  });
  bool isOutside = true;
  element = exprs.rewrite(element, [&](ExprRef e) -> ExprRef {
    if (e->kind == ExprKind::Read)
      isOutside &= !isInside(e->value) || llvm::is_contained(kept, e->value);
    if (e->kind != ExprKind::Scalar || e->value == step || !isInside(e->value))
      return nullptr;
    ExprRef value = number(e->value);
    isOutside &= value != nullptr;
    return value;
  });
  return isOutside ? element : nullptr;
}

bool isPlain(attn::ScanOp scan) {
  return llvm::none_of(scan.getResultTypes(),
                       [](Type type) {
                         return llvm::is_contained(
                             cast<RankedTensorType>(type).getShape(), 0);
                       }) &&
         llvm::all_of(scan.getBody().front().without_terminator(),
                      [](Operation &op) { return isMemoryEffectFree(&op); });
}

} // namespace heed
