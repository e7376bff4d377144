//===- CausalBound.cpp - a key that is no later than a query --------------===//
#include "passes/Recurrence/CausalBound.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace heed {

std::optional<CausalBound> matchCausalBound(ExprRef condition, unsigned key,
                                            ArrayRef<unsigned> outputs) {
  if (!condition->isOp("arith.cmpi"))
    return std::nullopt;
  ExprRef sides[] = {Exprs::stripExtension(condition->operand(0)),
                     Exprs::stripExtension(condition->operand(1))};
  using Predicate = arith::CmpIPredicate;
  Predicate predicate =
      cast<arith::CmpIPredicateAttr>(
          cast<DictionaryAttr>(condition->attr).get("predicate"))
          .getValue();
  bool isStrict = predicate == Predicate::slt || predicate == Predicate::sgt;
  if (!isStrict && predicate != Predicate::sle && predicate != Predicate::sge)
    return std::nullopt;
  if (predicate == Predicate::sge || predicate == Predicate::sgt)
    std::swap(sides[0], sides[1]);
  if (sides[0]->kind != ExprKind::Var || sides[1]->kind != ExprKind::Var)
    return std::nullopt;
  // The key is below, or above.
  bool isBehind = sides[1]->number == key;
  unsigned query = sides[isBehind ? 0 : 1]->number;
  if ((sides[0]->number != key && !isBehind) ||
      !llvm::is_contained(outputs, query))
    return std::nullopt;
  return CausalBound{query, isStrict, isBehind};
}

std::optional<CausalReduction>
matchCausalReduction(Exprs &exprs, ExprRef reduction,
                     ArrayRef<unsigned> outputs) {
  if (!reduction || reduction->kind != ExprKind::Reduce)
    return std::nullopt;
  SmallVector<unsigned> keys;
  ExprRef body = exprs.open(reduction, keys);
  if (keys.size() != 1 ||
      (body->kind != ExprKind::If && !body->isOp("arith.select")))
    return std::nullopt;
  std::optional<CausalBound> bound =
      matchCausalBound(body->operand(0), keys[0], outputs);
  Builder b(exprs.context);
  TypedAttr neutral =
      neutralElement(b, reduction->name->getStringRef(), reduction->type);
  if (!bound || body->operand(2) != exprs.constant(neutral) ||
      exprs.extent(bound->query) != exprs.extent(keys[0]))
    return std::nullopt;
  return CausalReduction{keys[0], *bound, body->operand(1)};
}

} // namespace heed
