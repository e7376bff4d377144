//===- LinearUpdate.cpp - a value that is linear in another ---------------===//
#include "passes/Recurrence/LinearUpdate.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace heed {
namespace {

/// A product that is added; where not all of `guards` hold, it is not. `held`
/// is a factor more, a sum over the old value.
struct Term {
  SmallVector<ExprRef> guards;
  Product product;
  bool isNegative = false;
  ExprRef held = nullptr;
};

/// factor * old + the sum of terms; a factor of null is 0.
struct Linear {
  ExprRef factor = nullptr;
  SmallVector<Term> terms;
};

class LinearMatcher {
public:
  LinearMatcher(Exprs &exprs, ExprRef old) : exprs(exprs), old(old) {}
  std::optional<Linear> match(ExprRef e);

private:
  bool hasOld(ExprRef e) {
    bool found = false;
    Exprs::walk(e, [&](ExprRef inner) {
      found |= inner->kind == ExprKind::Read && inner->value == old->value;
    });
    return found;
  }
  ExprRef number(double value) {
    return exprs.constant(FloatAttr::get(old->type, value));
  }
  ExprRef orZero(ExprRef factor) { return factor ? factor : number(0.0); }
  std::optional<Linear> scale(ExprRef e, ExprRef by, bool below);
  std::optional<Linear> add(ExprRef a, ExprRef b, bool subtracts);
  std::optional<Linear> choose(ExprRef e);
  void openChoices(Product &product);
  static bool isOrZero(ExprRef e) {
    return (e->kind == ExprKind::If || e->isOp("arith.select")) &&
           (Exprs::constantFloat(e->operand(1)) == 0.0 ||
            Exprs::constantFloat(e->operand(2)) == 0.0);
  }
  static void negate(std::optional<Linear> &linear) {
    for (Term &term : linear->terms)
      term.isNegative = !term.isNegative;
  }

  Exprs &exprs;
  ExprRef old;
};

/// \p e times \p by, or divided by it.
std::optional<Linear> LinearMatcher::scale(ExprRef e, ExprRef by, bool below) {
  if (hasOld(by))
    return std::nullopt;
  std::optional<Linear> linear = match(e);
  if (!linear)
    return std::nullopt;
  if (linear->factor)
    linear->factor = Exprs::constantFloat(linear->factor) == 1.0 && !below
                         ? by
                         : exprs.op(below ? "arith.divf" : "arith.mulf",
                                    old->type, {linear->factor, by});
  for (Term &term : linear->terms)
    flatten(exprs, by, term.product, below);
  return linear;
}

std::optional<Linear> LinearMatcher::add(ExprRef a, ExprRef b, bool subtracts) {
  std::optional<Linear> left = match(a), right = match(b);
  if (!left || !right)
    return std::nullopt;
  if (subtracts) {
    negate(right);
    if (right->factor)
      right->factor = exprs.op("arith.negf", old->type, {right->factor});
  }
  if (left->factor && right->factor)
    left->factor =
        exprs.op("arith.addf", old->type, {left->factor, right->factor});
  else if (right->factor)
    left->factor = right->factor;
  left->terms.append(right->terms);
  return left;
}

/// A product or zero, as a factor of \p product, becomes factors that each are
/// one of its own or zero (below the line: or 1).
void LinearMatcher::openChoices(Product &product) {
  SmallVector<ExprRef> over;
  for (ExprRef e : product.over) {
    Product chosen;
    bool first = isOrZero(e) && Exprs::constantFloat(e->operand(2)) == 0.0;
    if (isOrZero(e))
      flatten(exprs, e->operand(first ? 1 : 2), chosen);
    if (chosen.over.empty()) {
      over.push_back(e);
      continue;
    }
    auto choice = [&](ExprRef factor, double otherwise) {
      ExprRef other = number(otherwise);
      return exprs.select(e->operand(0), first ? factor : other,
                          first ? other : factor, e->kind == ExprKind::If);
    };
    for (ExprRef factor : chosen.over)
      over.push_back(choice(factor, 0.0));
    for (ExprRef factor : chosen.under)
      product.under.push_back(choice(factor, 1.0));
  }
  product.over = over;
}

/// A branch that keeps the state multiplies it by 1.
std::optional<Linear> LinearMatcher::choose(ExprRef e) {
  ExprRef condition = e->operand(0);
  if (hasOld(condition))
    return std::nullopt;
  std::optional<Linear> yes = match(e->operand(1)), no = match(e->operand(2));
  if (!yes || !no)
    return std::nullopt;
  bool isGuard = e->kind == ExprKind::If;
  Linear result;
  if (yes->factor || no->factor)
    result.factor = yes->factor == no->factor
                        ? yes->factor
                        : exprs.select(condition, orZero(yes->factor),
                                       orZero(no->factor), isGuard);
  for (auto [branch, guard] : {std::pair(&*yes, condition),
                               std::pair(&*no, exprs.logicalNot(condition))})
    for (Term &term : branch->terms) {
      term.guards.insert(term.guards.begin(), guard);
      result.terms.push_back(term);
    }
  return result;
}

std::optional<Linear> LinearMatcher::match(ExprRef e) {
  if (e == old)
    return Linear{number(1.0), {}};
  bool isSum = e->isOp("arith.addf") || e->isOp("arith.subf");
  if (!hasOld(e) && !isSum && !e->isOp("arith.negf")) {
    if (Exprs::constantFloat(e) == 0.0)
      return Linear{};
    // Nothing is added in a branch of 0; all else is one product.
    if (isOrZero(e))
      return choose(e);
    Term term;
    flatten(exprs, e, term.product);
    openChoices(term.product);
    return Linear{nullptr, {term}};
  }
  if (e->isReduceBy("arith.addf")) {
    Term term;
    term.held = e;
    return Linear{nullptr, {term}};
  }
  if (isSum)
    return add(e->operand(0), e->operand(1), e->isOp("arith.subf"));
  if (e->kind == ExprKind::If || e->isOp("arith.select"))
    return choose(e);
  if (e->isOp("arith.negf")) {
    std::optional<Linear> linear = match(e->operand(0));
    if (!linear)
      return std::nullopt;
    negate(linear);
    if (linear->factor)
      linear->factor = exprs.op("arith.negf", old->type, {linear->factor});
    return linear;
  }
  if (e->isOp("arith.mulf"))
    return hasOld(e->operand(0)) ? scale(e->operand(0), e->operand(1), false)
                                 : scale(e->operand(1), e->operand(0), false);
  if (e->isOp("arith.divf"))
    return scale(e->operand(0), e->operand(1), true);
  return std::nullopt;
}

/// \p value more, or less, than \p sum, if there is one.
ExprRef sumWith(Exprs &exprs, ExprRef sum, ExprRef value, bool subtracts) {
  if (!sum)
    return subtracts ? exprs.op("arith.negf", value->type, {value}) : value;
  return exprs.op(subtracts ? "arith.subf" : "arith.addf", value->type,
                  {sum, value});
}

/// Puts the sum of \p terms into \p update as one product: what all have as a
/// factor, times a sum. Whether it is one.
bool joinTerms(Exprs &exprs, ArrayRef<Term> terms, LinearUpdate &update) {
  bool sameGuards = llvm::all_of(
      terms, [&](const Term &term) { return term.guards == terms[0].guards; });
  auto isCommon = [&](ExprRef e) {
    return llvm::all_of(terms, [&](const Term &term) {
      return sameGuards && llvm::is_contained(term.product.over, e);
    });
  };
  SmallVector<ExprRef> common;
  for (ExprRef e : terms[0].product.over)
    if (isCommon(e) && !llvm::is_contained(common, e))
      common.push_back(e);
  ExprRef sum = nullptr;
  for (const Term &term : terms) {
    if (term.held && (!sameGuards || (update.held && update.held != term.held)))
      return false;
    Product rest = term.product;
    for (ExprRef e : common)
      takeOne(rest.over, e);
    ExprRef value = multiply(exprs, rest.over, rest.under);
    for (ExprRef guard : llvm::reverse(term.guards))
      if (!sameGuards)
        value = exprs.select(guard, value,
                             exprs.constant(FloatAttr::get(value->type, 0.0)),
                             /*guard=*/true);
    if (term.held) {
      update.held = term.held;
      update.erased = sumWith(exprs, update.erased, value, !term.isNegative);
    } else {
      sum = sumWith(exprs, sum, value, term.isNegative);
    }
  }
  if (sameGuards)
    update.guards = terms[0].guards;
  update.product.over = common;
  if (!sum) // it erases alone
    sum = exprs.constant(FloatAttr::get(update.held->type, 0.0));
  update.product.over.push_back(sum);
  return true;
}

} // namespace

std::optional<LinearUpdate> matchLinearUpdate(Exprs &exprs, ExprRef next,
                                              ExprRef old) {
  std::optional<Linear> linear = LinearMatcher(exprs, old).match(next);
  if (!linear || !linear->factor || linear->terms.empty())
    return std::nullopt;
  LinearUpdate update;
  if (Exprs::constantFloat(linear->factor) != 1.0 &&
      !mutated("raise-linear-attention.forget-decay"))
    update.decay = linear->factor;
  if (Term &term = linear->terms[0]; linear->terms.size() == 1 && !term.held) {
    update.guards = term.guards;
    update.product = term.product;
    update.isNegative = term.isNegative;
  } else if (!joinTerms(exprs, linear->terms, update)) {
    return std::nullopt;
  }
  update.isNegative ^= mutated("raise-linear-attention.other-sign");
  return update;
}

SmallVector<LinearUpdate> matchSummedUpdates(Exprs &exprs, ExprRef next,
                                             ExprRef old) {
  std::optional<Linear> linear = LinearMatcher(exprs, old).match(next);
  LinearUpdate joined;
  if (!linear || !linear->factor || linear->terms.size() < 2 ||
      llvm::any_of(linear->terms, [](const Term &t) { return t.held; }) ||
      !joinTerms(exprs, linear->terms, joined))
    return {};
  ExprRef sum = joined.product.over.back();
  auto hasAll = [&](ExprRef e) {
    return llvm::all_of(sum->freeVars, [&](unsigned v) { return e->uses(v); });
  };
  SmallVector<LinearUpdate> updates;
  for (const Term &term : linear->terms) {
    LinearUpdate &update = updates.emplace_back();
    if (Exprs::constantFloat(linear->factor) != 1.0)
      update.decay = linear->factor;
    update.guards = term.guards;
    update.product = term.product;
    update.isNegative = term.isNegative;
    if (llvm::any_of(term.product.over, hasAll) ||
        llvm::any_of(term.product.under, hasAll))
      return {};
  }
  return updates;
}

std::optional<std::pair<ExprRef, ExprRef>>
splitProduct(Exprs &exprs, const LinearUpdate &update,
             ArrayRef<unsigned> vars) {
  Product with, without;
  for (ExprRef e : update.product.over)
    (e->usesAny(vars) ? with : without).over.push_back(e);
  for (ExprRef e : update.product.under)
    (e->usesAny(vars) ? with : without).under.push_back(e);
  ExprRef key = multiply(exprs, with.over, with.under),
          value = multiply(exprs, without.over, without.under);
  if (update.isNegative)
    key = exprs.op("arith.negf", key->type, {key});
  for (ExprRef guard : llvm::reverse(update.guards)) {
    if (guard->usesAny(vars))
      return std::nullopt;
    ExprRef zero = exprs.constant(FloatAttr::get(key->type, 0.0));
    if (!mutated("raise-linear-attention.forget-guard"))
      key = exprs.select(guard, key, zero, /*guard=*/true);
    value = exprs.select(guard, value, zero, /*guard=*/true);
  }
  return std::pair(key, value);
}

} // namespace heed
