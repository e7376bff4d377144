//===- Residues.cpp - conditions on remainders of positions ---------------===//
#include "passes/Masks/Residues.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

namespace {

/// x % modulus, which is at least 0 where x is.
struct Remainder {
  ExprRef x;
  int64_t modulus;
};

std::optional<Remainder> remainderOf(ExprRef e) {
  auto positive = [](ExprRef s) -> std::optional<int64_t> {
    std::optional<int64_t> value = Exprs::constantInt(s);
    return value && *value > 1 && *value < (1 << 20) ? value : std::nullopt;
  };
  if (e->isOp("arith.remsi"))
    if (auto modulus = positive(e->operand(1)))
      return Remainder{e->operand(0), *modulus};
  // x - (x // s) s
  if (!e->isOp("arith.subi") || !e->operand(1)->isOp("arith.muli"))
    return std::nullopt;
  ExprRef x = e->operand(0), product = e->operand(1);
  for (int k : {0, 1}) {
    ExprRef quotient = product->operand(k), s = product->operand(1 - k);
    if (auto modulus = positive(s);
        modulus && quotient->isOp("arith.floordivsi") &&
        quotient->operand(0) == x && quotient->operand(1) == s)
      return Remainder{x, *modulus};
  }
  return std::nullopt;
}

std::optional<arith::CmpIPredicate> predicateOf(ExprRef e) {
  if (!e->isOp("arith.cmpi"))
    return std::nullopt;
  return arith::CmpIPredicate(
      cast<IntegerAttr>(cast<DictionaryAttr>(e->attr).get("predicate"))
          .getInt());
}

} // namespace

std::optional<int64_t> heed::residueOfPairs(ExprRef e, ExprRef query,
                                            ExprRef key) {
  if (predicateOf(e) != arith::CmpIPredicate::eq)
    return std::nullopt;
  auto x = remainderOf(e->operand(0)), y = remainderOf(e->operand(1));
  // i % s == j % s
  if (x && y && x->modulus == y->modulus &&
      ((x->x == query && y->x == key) || (x->x == key && y->x == query)))
    return x->modulus;
  // (i - j) % s == 0
  for (int k : {0, 1})
    if (auto r = k == 0 ? x : y;
        r && Exprs::isConstantInt(e->operand(1 - k), 0))
      if (r->x->isOp("arith.subi") &&
          ((r->x->operand(0) == query && r->x->operand(1) == key) ||
           (r->x->operand(0) == key && r->x->operand(1) == query)))
        return r->modulus;
  return std::nullopt;
}

std::optional<Residues> heed::residuesOf(ExprRef e, ExprRef position) {
  std::optional<arith::CmpIPredicate> predicate = predicateOf(e);
  if (!predicate)
    return std::nullopt;
  for (int k : {0, 1}) {
    auto r = remainderOf(e->operand(k));
    auto bound = Exprs::constantInt(e->operand(1 - k));
    if (!r || !bound || r->x != position)
      continue;
    Residues classes{r->modulus, 0, 0};
    bool ended = false;
    for (int64_t at = 0; at < r->modulus; ++at) {
      APInt x(64, at), y(64, *bound, /*isSigned=*/true);
      bool passes =
          arith::applyCmpPredicate(*predicate, k == 0 ? x : y, k == 0 ? y : x);
      if (passes && ended)
        return std::nullopt;
      if (passes && classes.count++ == 0)
        classes.first = at;
      ended = classes.count && !passes;
    }
    if (classes.count == 0 || 2 * classes.count > r->modulus)
      return std::nullopt;
    if (mutated("split-masks.first-classes"))
      classes.first = 0;
    return classes;
  }
  return std::nullopt;
}
