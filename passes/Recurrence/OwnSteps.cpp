//===- OwnSteps.cpp - recurrences whose elements are each its own ---------===//
#include "passes/Recurrence/OwnSteps.h"
#include "passes/Algebra/TensorExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace heed;

bool OwnSteps::isAlike(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getRank() != int64_t(vars.size()))
    return false;
  for (auto [axis, v] : llvm::enumerate(vars))
    if (exprs.extentOf(tensor, axis) != exprs.extent(v))
      return false;
  return true;
}

/// \p element with positions as this file makes them: without flags.
static ExprRef withoutFlags(Exprs &exprs, ExprRef element) {
  return exprs.rewrite(element, [&](ExprRef e) -> ExprRef {
    return e->type.isIndex() && (e->isOp("arith.addi") || e->isOp("arith.subi"))
               ? exprs.op(e->name->getStringRef(), e->type, e->operands)
               : nullptr;
  });
}

bool OwnSteps::match() {
  if (carried.empty() || scan.getStacked().empty() || !isPlain(scan) ||
      getConstantIntValue(scan.getLow()) != 0)
    return false;
  SmallVector<Value> kept(carried);
  llvm::append_range(kept, yielded);
  auto open = [&](Value tensor, ArrayRef<Value> seen) -> ExprRef {
    if (!isAlike(tensor))
      return nullptr;
    ExprRef element = body.open(exprs.read(tensor, at), seen);
    bool isOwn = element;
    if (element)
      Exprs::walk(element, [&](ExprRef e) {
        isOwn &=
            e->kind != ExprKind::Reduce &&
            (e->kind != ExprKind::Read || !llvm::is_contained(kept, e->value) ||
             ArrayRef<ExprRef>(e->operands) == ArrayRef<ExprRef>(at));
      });
    return isOwn ? withoutFlags(exprs, element) : nullptr;
  };
  for (Value state : carried)
    if (!isAlike(state))
      return false;
  for (Value state : yielded)
    next.push_back(open(state, carried));
  for (Value row : scan.terminator().getRows())
    rows.push_back(open(row, kept));
  return !llvm::is_contained(next, nullptr) &&
         !llvm::is_contained(rows, nullptr);
}

ExprRef OwnSteps::placeOf(unsigned row, ExprRef step) {
  if (!scan.getReversed()[row])
    return step;
  Type index = step->type;
  return exprs.op("arith.subi", index,
                  {exprs.op("arith.subi", index,
                            {exprs.fold(getAsOpFoldResult(scan.getHigh())),
                             exprs.index(1)}),
                   step});
}

ExprRef OwnSteps::placeBefore(unsigned row, ExprRef step) {
  Type index = step->type;
  ExprRef one = exprs.index(1);
  if (!scan.getReversed()[row])
    return exprs.op(
        "arith.maxsi", index,
        {exprs.op("arith.subi", index, {step, one}), exprs.index(0)});
  ExprRef last = exprs.op("arith.subi", index,
                          {exprs.fold(getAsOpFoldResult(scan.getHigh())), one});
  return exprs.op(
      "arith.minsi", index,
      {exprs.op("arith.addi", index, {placeOf(row, step), one}), last});
}
