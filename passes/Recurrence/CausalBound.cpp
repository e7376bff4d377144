//===- CausalBound.cpp - a key that is no later than a query --------------===//
#include "passes/Recurrence/CausalBound.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace heed {

namespace {

/// low <= high; `isStrict`: <.
struct Order {
  ExprRef low = nullptr, high = nullptr;
  bool isStrict = false;
};

} // namespace

/// \p condition as such.
static std::optional<Order> matchOrder(ExprRef condition) {
  if (!condition->isOp("arith.cmpi"))
    return std::nullopt;
  Order order{Exprs::stripExtension(condition->operand(0)),
              Exprs::stripExtension(condition->operand(1))};
  using Predicate = arith::CmpIPredicate;
  Predicate predicate =
      cast<arith::CmpIPredicateAttr>(
          cast<DictionaryAttr>(condition->attr).get("predicate"))
          .getValue();
  order.isStrict = predicate == Predicate::slt || predicate == Predicate::sgt;
  if (!order.isStrict && predicate != Predicate::sle &&
      predicate != Predicate::sge)
    return std::nullopt;
  if (predicate == Predicate::sge || predicate == Predicate::sgt)
    std::swap(order.low, order.high);
  return order;
}

bool isUpperBound(ExprRef condition, unsigned var) {
  std::optional<Order> order = matchOrder(condition);
  return order && order->low->kind == ExprKind::Var &&
         order->low->number == var && !order->high->uses(var);
}

std::optional<CausalBound> matchCausalBound(ExprRef condition, unsigned key,
                                            ArrayRef<unsigned> outputs) {
  std::optional<Order> order = matchOrder(condition);
  if (!order || order->low->kind != ExprKind::Var ||
      order->high->kind != ExprKind::Var)
    return std::nullopt;
  // The key is below, or above.
  bool isBehind = order->high->number == key;
  unsigned query = isBehind ? order->low->number : order->high->number;
  if ((order->low->number != key && !isBehind) ||
      !llvm::is_contained(outputs, query))
    return std::nullopt;
  return CausalBound{query, order->isStrict, isBehind};
}

ExprRef isNotLast(Exprs &exprs, const CausalBound &bound, unsigned key) {
  ExprRef last = exprs.index(0);
  if (!bound.isBehind)
    last =
        exprs.op("arith.subi", last->type, {exprs.extent(key), exprs.index(1)});
  return exprs.compare(arith::CmpIPredicate::ne, exprs.var(key), last);
}

/// What is compared, if \p condition says that a key and a query have the same
/// integer: that of the query.
static ExprRef matchSegment(Exprs &exprs, ExprRef condition, unsigned key,
                            unsigned query) {
  if (!condition->isOp("arith.cmpi") ||
      cast<arith::CmpIPredicateAttr>(
          cast<DictionaryAttr>(condition->attr).get("predicate"))
              .getValue() != arith::CmpIPredicate::eq)
    return nullptr;
  ExprRef own = condition->operand(0), other = condition->operand(1);
  if (own->uses(key))
    std::swap(own, other);
  DenseMap<unsigned, ExprRef> rename;
  rename[key] = exprs.var(query);
  bool isSame = !own->uses(key) && !other->uses(query) &&
                exprs.substitute(other, rename) == own;
  return isSame ? own : nullptr;
}

/// Adds \p condition to what \p reduction has besides its bound. Whether it
/// can.
static bool addCondition(Exprs &exprs, CausalReduction &reduction,
                         ExprRef condition) {
  if (!condition->uses(reduction.bound.query)) {
    reduction.seen = reduction.seen
                         ? exprs.select(reduction.seen, condition,
                                        exprs.truth(false), reduction.isGuarded)
                         : condition;
    return true;
  }
  if (reduction.segment || reduction.isGuarded)
    return false;
  reduction.segment =
      matchSegment(exprs, condition, reduction.key, reduction.bound.query);
  return reduction.segment;
}

/// What holds where \p condition does, in this order: a later one may read
/// where an earlier one holds alone.
static void addConjuncts(ExprRef condition, SmallVectorImpl<ExprRef> &all) {
  if (!condition->isOp("arith.andi")) {
    all.push_back(condition);
    return;
  }
  for (ExprRef part : condition->operands)
    addConjuncts(part, all);
}

std::optional<CausalReduction>
matchCausalReduction(Exprs &exprs, ExprRef reduction,
                     ArrayRef<unsigned> outputs) {
  if (!reduction || reduction->kind != ExprKind::Reduce)
    return std::nullopt;
  SmallVector<unsigned> keys;
  ExprRef body = exprs.open(reduction, keys);
  if (keys.size() != 1)
    return std::nullopt;
  CausalReduction found;
  found.key = keys[0];
  Builder b(exprs.context);
  ExprRef nothing = exprs.constant(
      neutralElement(b, reduction->name->getStringRef(), reduction->type));
  SmallVector<ExprRef> conditions;
  while ((body->kind == ExprKind::If || body->isOp("arith.select")) &&
         body->operand(2) == nothing) {
    found.isGuarded |= body->kind == ExprKind::If;
    addConjuncts(body->operand(0), conditions);
    body = body->operand(1);
  }
  std::optional<CausalBound> bound;
  auto *own = llvm::find_if(conditions, [&](ExprRef e) {
    bound = matchCausalBound(e, found.key, outputs);
    return bound.has_value();
  });
  if (own == conditions.end() ||
      exprs.extent(bound->query) != exprs.extent(found.key))
    return std::nullopt;
  conditions.erase(own);
  found.bound = *bound;
  found.term = body;
  // No query has the last key: what is read of it is not to be read.
  if (found.isGuarded && bound->isStrict)
    found.seen = isNotLast(exprs, *bound, found.key);
  if (!llvm::all_of(conditions,
                    [&](ExprRef e) { return addCondition(exprs, found, e); }))
    return std::nullopt;
  return found;
}

} // namespace heed
