//===- HoistedParts.cpp - what a recurrence computes before its steps -----===//
#include "passes/Recurrence/HoistedParts.h"
#include "passes/Algebra/Products.h"
#include "passes/Recurrence/StepBody.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace heed;

bool heed::readsAcross(ExprRef element, unsigned lane) {
  ArrayRef<ExprRef> indices(element->operands);
  return element->kind == ExprKind::Read && !indices.empty() &&
         llvm::any_of(indices.drop_back(),
                      [&](ExprRef index) { return index->uses(lane); });
}

/// Whether no state enters \p element, and no step, unless it \p mayStep.
bool HoistedParts::isFree(ExprRef element, bool mayStep) {
  attn::StepOp end = scan.terminator();
  bool free = true;
  Exprs::walk(element, [&](ExprRef e) {
    free &= (mayStep || !body.isStep(e)) && !llvm::is_contained(numbers, e);
    if (e->kind == ExprKind::Read)
      free &= !llvm::is_contained(scan.carried(), e->value) &&
              !llvm::is_contained(end.getStates(), e->value);
  });
  return free;
}

/// Whether \p element is better stored than computed, or read, in each step:
/// it has an exponential or the like, or lanes that lie apart.
bool HoistedParts::isWorthStoring(ExprRef element) {
  bool isWorth = false;
  Exprs::walk(element, [&](ExprRef part) {
    if (part->kind == ExprKind::Op)
      isWorth |= part->isOp("arith.divf") ||
                 part->name->getDialectNamespace() == "math";
    isWorth |= readsAcross(part, order.back());
  });
  return isWorth;
}

/// exp(x a), where no step enters a, as 2^(x (a log2 e)): of a, that product is
/// stored too, and what is left of an exponent behind a whole number is a
/// difference. Null if \p element is no such.
ExprRef HoistedParts::hoistExponent(ExprRef element) {
  if (!element->isOp("math.exp"))
    return nullptr;
  Product exponent;
  flatten(exprs, element->operand(0), exponent);
  SmallVector<ExprRef> fixed, moving;
  for (ExprRef factor : exponent.over)
    (factor->uses(order.back()) && factor->uses(order.end()[-2]) &&
             isFree(factor, /*mayStep=*/false)
         ? fixed
         : moving)
        .push_back(factor);
  if (!exponent.under.empty() || moving.empty() ||
      llvm::none_of(fixed, [&](ExprRef e) { return isWorthStoring(e); }))
    return nullptr;
  fixed.push_back(
      exprs.constant(FloatAttr::get(element->type, llvm::numbers::log2e)));
  return exprs.op("math.exp2", element->type,
                  {exprs.op("arith.mulf", element->type,
                            {hoist(multiply(exprs, moving)),
                             store(multiply(exprs, fixed))})});
}

/// A product with first what all places of a column have in common: a step
/// computes it once. Null if \p element is no such.
ExprRef HoistedParts::shareFactors(ExprRef element) {
  if (!element->isOp("arith.mulf"))
    return nullptr;
  Product product;
  flatten(exprs, element, product);
  SmallVector<ExprRef> shared, own;
  for (ExprRef factor : product.over)
    (factor->uses(order.end()[-2]) ? own : shared).push_back(factor);
  if (!product.under.empty() || own.empty() || shared.size() < 2)
    return nullptr;
  SmallVector<ExprRef> all{hoist(multiply(exprs, shared))};
  for (ExprRef factor : own)
    all.push_back(hoist(factor));
  return multiply(exprs, all);
}

/// \p element, with what is worth it stored: what no step enters, of each place
/// of each column, and what is the same in all columns, of all steps. A branch
/// that may not be taken is left as it is.
ExprRef HoistedParts::hoist(ExprRef element) {
  return exprs.replaceOutermost(element, [&](ExprRef e) -> ExprRef {
    bool ofPlaces = e->uses(order.back()) && e->uses(order.end()[-2]);
    if (isa<FloatType>(e->type) &&
        isFree(e, /*mayStep=*/!e->uses(order.back())) &&
        (ofPlaces || !e->uses(order.back())) && isWorthStoring(e))
      return store(e);
    if (e->kind == ExprKind::If)
      return e;
    ExprRef power = hoistExponent(e);
    return power ? power : shareFactors(e);
  });
}

/// \p element in a tensor that is computed before the first step, read where
/// the variables are.
ExprRef HoistedParts::store(ExprRef element) {
  SmallVector<unsigned> own;
  SmallVector<ExprRef> place;
  for (unsigned v : order)
    if (element->uses(v)) {
      own.push_back(v);
      place.push_back(exprs.var(v));
    }
  ExprRef whole = element;
  if (!isFree(element, /*mayStep=*/false)) {
    ExprRef step = exprs.scalar(scan.step()), low = exprs.scalar(scan.getLow());
    bool fromZero = getConstantIntValue(scan.getLow()) == 0;
    unsigned position =
        exprs.freshVar(exprs.extentOf(scan.getOuts()[0], scan.getAxes()[0]));
    ExprRef number = exprs.var(position);
    if (!fromZero)
      number = exprs.op("arith.addi", number->type, {low, number});
    whole = exprs.rewrite(element, [&](ExprRef e) -> ExprRef {
      return body.isStep(e) ? number : nullptr;
    });
    unsigned axis = own.empty() ? 0 : own.size() - 1;
    own.insert(own.begin() + axis, position);
    place.insert(place.begin() + axis,
                 fromZero ? step
                          : exprs.op("arith.subi", step->type, {step, low}));
  }
  Value &tensor = stored[element];
  if (!tensor)
    tensor = writeTensor(b, scan.getLoc(), exprs, whole, own);
  return exprs.read(tensor, place);
}
