//===- Conditions.cpp - truth values in one form --------------------------===//
//
// And, or and not over leaves: polynomials that are at least 0, comparisons of
// numbers, elements of tensors. Not stands before leaves alone.
#include "passes/Algebra/NormalForm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace heed {

ExprRef NormalForm::both(ArrayRef<ExprRef> list) {
  SmallVector<ExprRef> parts;
  std::function<bool(ExprRef)> add = [&](ExprRef c) {
    if (auto known = Exprs::constantInt(c))
      return *known != 0;
    if (isAnd(c))
      return llvm::all_of(c->operands, add);
    if (llvm::is_contained(parts, negate(c)))
      return false;
    if (!llvm::is_contained(parts, c))
      parts.push_back(c);
    return true;
  };
  if (!llvm::all_of(list, add))
    return exprs.truth(false);
  // What the others decide is decided.
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned k = 0; k < parts.size() && !changed; ++k) {
      if (!isOr(parts[k]) && !askedOf(parts[k]))
        continue;
      ExprRef c = parts[k];
      for (unsigned other = 0; other < parts.size(); ++other)
        if (other != k)
          c = under(c, parts[other], true);
      if (c == parts[k])
        continue;
      SmallVector<ExprRef> again(parts);
      again[k] = c;
      parts.clear();
      if (!llvm::all_of(again, add))
        return exprs.truth(false);
      changed = true;
    }
  }
  if (parts.empty())
    return exprs.truth(true);
  return parts.size() == 1 ? parts[0] : node("algebra.and", truth(), parts);
}

ExprRef NormalForm::either(ArrayRef<ExprRef> list) {
  SmallVector<ExprRef> negated;
  for (ExprRef c : list)
    negated.push_back(negate(c));
  return negate(both(negated));
}

ExprRef NormalForm::negate(ExprRef c) {
  if (auto known = Exprs::constantInt(c))
    return exprs.truth(!*known);
  if (c->isOp("algebra.not"))
    return c->operand(0);
  if (isAnd(c) || isOr(c)) {
    SmallVector<ExprRef> parts;
    for (ExprRef part : c->operands)
      parts.push_back(negate(part));
    return node(isAnd(c) ? "algebra.or" : "algebra.and", truth(), parts);
  }
  return node("algebra.not", truth(), {c});
}

ExprRef NormalForm::under(ExprRef c, ExprRef known, bool holds) {
  if (c == known)
    return exprs.truth(holds);
  if (c == negate(known))
    return exprs.truth(!holds);
  if (const Terms *value = askedOf(c)) {
    // Under a condition a number is what is left of it there.
    Terms left = *value;
    if (isAnd(known) && holds)
      for (ExprRef part : known->operands)
        left = assume(left, part, true);
    else
      left = assume(left, known, holds);
    if (reify(left) == reify(*value))
      return c;
    ExprRef simpler = isMinusInfinity(left);
    return c->isOp("algebra.not") ? negate(simpler) : simpler;
  }
  if (!isAnd(c) && !isOr(c))
    return c;
  SmallVector<ExprRef> parts;
  bool changed = false;
  for (ExprRef part : c->operands) {
    parts.push_back(under(part, known, holds));
    changed |= parts.back() != part;
  }
  if (!changed)
    return c;
  return isAnd(c) ? both(parts) : either(parts);
}

/// A leaf, decided where the case decides it.
ExprRef NormalForm::leaf(ExprRef c) {
  if (known.row) {
    if (c == known.row->dead)
      return exprs.truth(known.dead);
    if (c == negate(known.row->dead))
      return exprs.truth(!known.dead);
    // Where all scores are numbers, or NaN, a row is dead that has no key.
    const Term &weight = known.row->weight;
    if (known.row->maximum &&
        llvm::all_of(weight.factors,
                     [&](const Power &factor) { return factor.atom == nan; }) &&
        c == some(weight.sums, both(weight.guards)))
      return exprs.truth(!known.dead);
  }
  return c;
}

ExprRef NormalForm::condition(ExprRef e) {
  if (ExprRef found = conditions.lookup(e))
    return found;
  ExprRef result = isTooLarge() ? exprs.truth(true) : computeCondition(e);
  return conditions[e] = result;
}

ExprRef NormalForm::computeCondition(ExprRef e) {
  switch (e->kind) {
  case ExprKind::Constant:
    return e;
  case ExprKind::Scalar: {
    Operation *def = e->value.getDefiningOp();
    if (!def || !isa<arith::ArithDialect>(def->getDialect()))
      return leaf(e);
    SmallVector<ExprRef> operands;
    for (Value operand : def->getOperands())
      operands.push_back(exprs.scalar(operand));
    return condition(
        exprs.op(def->getName(), def->getAttrDictionary(), e->type, operands));
  }
  case ExprKind::Read: {
    if (ExprRef inner = expand(e))
      return condition(inner);
    SmallVector<ExprRef> at;
    for (ExprRef index : e->operands)
      at.push_back(reify(terms(index)));
    return leaf(exprs.read(e->value, at));
  }
  case ExprKind::Reduce:
    return e->isReduceBy("arith.andi") || e->isReduceBy("arith.ori")
               ? any(e, e->isReduceBy("arith.andi"))
               : leaf(e);
  default:
    break;
  }
  if (e->kind == ExprKind::If || e->isOp("arith.select")) {
    ExprRef c = condition(e->operand(0));
    return either({both({c, condition(e->operand(1))}),
                   both({negate(c), condition(e->operand(2))})});
  }
  if (e->isOp("arith.andi"))
    return both({condition(e->operand(0)), condition(e->operand(1))});
  if (e->isOp("arith.ori"))
    return either({condition(e->operand(0)), condition(e->operand(1))});
  if (e->isOp("arith.xori")) {
    ExprRef a = condition(e->operand(0)), b = condition(e->operand(1));
    return either({both({a, negate(b)}), both({b, negate(a)})});
  }
  if (e->isOp("arith.cmpi") || e->isOp("arith.cmpf"))
    return comparison(e);
  SmallVector<ExprRef> operands;
  for (ExprRef operand : e->operands)
    operands.push_back(operand->type.isInteger(1) ? condition(operand)
                                                  : reify(terms(operand)));
  if (e->kind != ExprKind::Op)
    return leaf(e);
  return leaf(
      exprs.op(*e->name, cast<DictionaryAttr>(e->attr), e->type, operands));
}

ExprRef NormalForm::atLeastZero(const Terms &a) {
  Terms value = a;
  simplify(value, /*dropZeros=*/true);
  if (value.isConstant())
    return exprs.truth(value.constant().num >= 0);
  if (neverNegative(value))
    return exprs.truth(true);
  // p >= 0 or not (-p - 1 >= 0): the one whose first coefficient is positive.
  Terms opposite = add(scale(value, Fraction(-1, 1)),
                       number(Fraction(-1, 1), /*isReal=*/false));
  if (neverNegative(opposite))
    return exprs.truth(false);
  auto leading = [&](const Terms &x) {
    std::pair<unsigned, bool> first{~0u, true};
    for (const Term &term : x.terms)
      if (!term.isConstant())
        first = std::min(first, {reify(term)->id, term.coefficient.num > 0});
    return first.second;
  };
  if (leading(value))
    return leaf(node("algebra.nonneg", truth(), {reify(value)}));
  return negate(leaf(node("algebra.nonneg", truth(), {reify(opposite)})));
}

const Terms *NormalForm::askedOf(ExprRef c) {
  auto found = asked.find(c->isOp("algebra.not") ? c->operand(0) : c);
  return found == asked.end() ? nullptr : &found->second;
}

/// m, if \p value is m + log(sum of exp(s - m)) with the greatest m of s. Where
/// m is a number, so is the other: one weight is 1.
std::optional<Terms> NormalForm::maximumOfLogSumExp(const Terms &value) {
  if (value.terms.size() != 2)
    return std::nullopt;
  auto atomOf = [](const Term &term) -> ExprRef {
    bool isAtom = term.sums.empty() && term.guards.empty() &&
                  term.factors.size() == 1 && term.factors[0].power == 1 &&
                  term.coefficient.num == term.coefficient.den;
    return isAtom ? term.factors[0].atom : nullptr;
  };
  for (int k : {0, 1}) {
    ExprRef top = atomOf(value.terms[k]), log = atomOf(value.terms[1 - k]);
    auto row = maxima.find(top);
    auto of = logarithms.find(log);
    if (row == maxima.end() || of == logarithms.end())
      continue;
    Terms m = atom(top), weight;
    weight.terms.push_back(row->second);
    Terms sum = multiply(weight, exponential(scale(m, Fraction(-1, 1)), false));
    simplify(sum, /*dropZeros=*/true);
    if (reify(sum) == reify(of->second))
      return m;
  }
  return std::nullopt;
}

/// Whether \p value is the logarithm of how many there are, which are some.
bool NormalForm::isLogOfCount(const Terms &value) {
  if (value.terms.size() != 1 || value.terms[0].factors.size() != 1)
    return false;
  auto of = logarithms.find(value.terms[0].factors[0].atom);
  return of != logarithms.end() && of->second.terms.size() == 1 &&
         of->second.terms[0].guards.empty() &&
         of->second.terms[0].factors.empty();
}

ExprRef NormalForm::isMinusInfinity(Terms value) {
  SmallVector<ExprRef> present(value.present.begin(), value.present.end());
  value.present.clear();
  simplify(value, /*dropZeros=*/true);
  if (std::optional<Terms> maximum = maximumOfLogSumExp(value))
    value = *maximum;
  if (isLogOfCount(value))
    return negate(both(present));
  ExprRef itself = exprs.truth(false);
  bool isNaN = value.terms.size() == 1 && value.terms[0].powerOf(nan);
  if (!value.isConstant() && !isNaN) {
    ExprRef form = reify(value);
    itself = node("algebra.minus_infinite", truth(), {form});
    asked.try_emplace(itself, value);
    Terms weight = exponential(value, /*base2=*/false);
    if (weight.terms.size() == 1 && weight.terms[0].guards.empty()) {
      weights[itself] = weight.terms[0];
    } else if (weight.terms.empty()) {
      // Of a key in a dead row.
      Term vanishing;
      for (const Term &term : value.terms)
        multiplyByExponential(vanishing, term);
      weights[itself] = vanishing;
    }
    auto row = maxima.find(form);
    if (row != maxima.end() &&
        llvm::none_of(found, [&](auto &r) { return r.dead == itself; }))
      found.push_back({itself, form, row->second});
    itself = leaf(itself);
  }
  return either({negate(both(present)), itself});
}

ExprRef NormalForm::compareReals(ExprRef e) {
  using P = arith::CmpFPredicate;
  P predicate = cast<DictionaryAttr>(e->attr)
                    .getAs<arith::CmpFPredicateAttr>("predicate")
                    .getValue();
  ExprRef a = e->operand(0), b = e->operand(1);
  if (predicate == P::OEQ || predicate == P::UNE)
    for (int k : {0, 1})
      if (Exprs::isMinusInfinity(e->operand(k))) {
        ExprRef c = isMinusInfinity(terms(e->operand(1 - k)));
        return predicate == P::OEQ ? c : negate(c);
      }
  // Greater is less the other way round.
  P less = predicate == P::OGT   ? P::OLT
           : predicate == P::OGE ? P::OLE
           : predicate == P::UGT ? P::ULT
           : predicate == P::UGE ? P::ULE
                                 : predicate;
  if (less != predicate)
    std::swap(a, b);
  SmallVector<ExprRef> operands{reify(terms(a)), reify(terms(b))};
  if (less == P::OEQ || less == P::UNE || less == P::ONE || less == P::UEQ)
    llvm::sort(operands, [](ExprRef x, ExprRef y) { return x->id < y->id; });
  return leaf(node("algebra.compare", truth(), operands,
                   arith::stringifyCmpFPredicate(less)));
}

ExprRef NormalForm::comparison(ExprRef e) {
  if (e->isOp("arith.cmpf"))
    return compareReals(e);
  ExprRef a = e->operand(0), b = e->operand(1);
  using P = arith::CmpIPredicate;
  P predicate = cast<DictionaryAttr>(e->attr)
                    .getAs<arith::CmpIPredicateAttr>("predicate")
                    .getValue();
  if (a->type.isInteger(1)) {
    ExprRef x = condition(a), y = condition(b);
    ExprRef differ = either({both({x, negate(y)}), both({y, negate(x)})});
    if (predicate == P::eq)
      return negate(differ);
    if (predicate == P::ne)
      return differ;
    return leaf(node("algebra.compare", truth(), {x, y},
                     arith::stringifyCmpIPredicate(predicate)));
  }
  Terms x = terms(a), y = terms(b);
  auto less = [&](const Terms &low, const Terms &high, int64_t by) {
    return add(add(high, scale(low, Fraction(-1, 1))),
               number(Fraction(-by, 1), /*isReal=*/false));
  };
  auto equal = [&] {
    return both({atLeastZero(less(x, y, 0)), atLeastZero(less(y, x, 0))});
  };
  switch (predicate) {
  case P::slt:
    return atLeastZero(less(x, y, 1));
  case P::sle:
    return atLeastZero(less(x, y, 0));
  case P::sgt:
    return atLeastZero(less(y, x, 1));
  case P::sge:
    return atLeastZero(less(y, x, 0));
  case P::eq:
    return equal();
  case P::ne:
    return negate(equal());
  default:
    return leaf(node("algebra.compare", truth(), {reify(x), reify(y)},
                     arith::stringifyCmpIPredicate(predicate)));
  }
}

/// Whether \p c, which is not known, holds for some of \p vars.
ExprRef NormalForm::some(ArrayRef<unsigned> vars, ExprRef c) {
  Term shape;
  shape.sums.assign(vars.begin(), vars.end());
  shape.factors.push_back({c, 1});
  return bind(
      "arith.ori", binderOrder(shape),
      [&](const DenseMap<unsigned, ExprRef> &to) {
        return exprs.substitute(c, to);
      },
      c->depth);
}

// all is not any not.
ExprRef NormalForm::any(ExprRef reduce, bool all) {
  SmallVector<unsigned> vars;
  ExprRef body = exprs.open(reduce, vars);
  bool isEmpty = false;
  for (unsigned v : vars)
    isEmpty |= isEmptyRange(v);
  if (isEmpty)
    return exprs.truth(all);
  ExprRef c = condition(body);
  if (all)
    c = negate(c);
  if (auto known = Exprs::constantInt(c))
    return exprs.truth(all ? !*known : *known);
  ExprRef some = this->some(vars, c);
  ExprRef dead = negate(some);
  if (all) {
    ScoreRow row;
    row.dead = dead;
    row.weight.sums.assign(vars.begin(), vars.end());
    if (isAnd(c))
      for (ExprRef part : c->operands)
        row.weight.addGuard(part);
    else
      row.weight.addGuard(c);
    if (llvm::none_of(found, [&](auto &r) { return r.dead == dead; }))
      found.push_back(row);
  }
  some = leaf(some);
  return all ? negate(some) : some;
}

} // namespace heed
