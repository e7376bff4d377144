//===- TermArithmetic.cpp - sums of products, added and multiplied --------===//
#include "passes/Algebra/NormalForm.h"

using namespace mlir;

namespace heed {

/// Conditions that one function is taken apart by.
constexpr unsigned mostCases = 6;

bool Term::uses(unsigned var) const {
  return llvm::any_of(guards, [&](ExprRef g) { return g->uses(var); }) ||
         llvm::any_of(factors,
                      [&](const Power &f) { return f.atom->uses(var); });
}

void Term::multiply(ExprRef atom, int power) {
  auto *at = llvm::lower_bound(factors, atom, [](const Power &f, ExprRef a) {
    return f.atom->id < a->id;
  });
  if (at == factors.end() || at->atom != atom) {
    factors.insert(at, {atom, power});
    return;
  }
  at->power += power;
  if (at->power == 0)
    factors.erase(at);
}

void Term::addGuard(ExprRef guard) {
  auto *at = llvm::lower_bound(
      guards, guard, [](ExprRef a, ExprRef b) { return a->id < b->id; });
  if (at == guards.end() || *at != guard)
    guards.insert(at, guard);
}

int Term::powerOf(ExprRef atom) const {
  for (const Power &factor : factors)
    if (factor.atom == atom)
      return factor.power;
  return 0;
}

Terms NormalForm::number(const Fraction &value, bool isReal) {
  Terms result;
  result.isReal = isReal;
  Term term;
  term.coefficient = value;
  if (isReal || value.num != 0)
    result.terms.push_back(term);
  return result;
}

Terms NormalForm::atom(ExprRef e) {
  Terms result;
  result.isReal = isa<FloatType>(e->type);
  result.terms.emplace_back();
  result.terms[0].multiply(e, 1);
  return result;
}

Terms NormalForm::minusInfinity() {
  Terms result;
  result.present.push_back(exprs.truth(false));
  return result;
}

Terms NormalForm::add(const Terms &a, const Terms &b) {
  // -inf - -inf, too.
  for (const Terms *x : {&a, &b})
    if (x->present.empty() && x->terms.size() == 1 &&
        x->terms[0].guards.empty() && x->terms[0].powerOf(nan))
      return atom(nan);
  // -inf + x, where x is NaN or -inf, is x.
  for (bool first : {true, false}) {
    const Terms &x = first ? a : b, &y = first ? b : a;
    bool isInfinite = x.terms.empty() && x.present.size() == 1 &&
                      Exprs::isConstantInt(x.present[0], 0);
    if (isInfinite && !y.present.empty() && y.terms.size() == 1 &&
        y.terms[0].guards.empty() && y.terms[0].powerOf(nan))
      return y;
  }
  if (!a.present.empty() || !b.present.empty())
    note(Axiom::ExcludedKey);
  Terms result = a;
  result.terms.append(b.terms.begin(), b.terms.end());
  SmallVector<ExprRef> present(a.present.begin(), a.present.end());
  llvm::append_range(present, b.present);
  result.present.clear();
  ExprRef all = both(present);
  if (isAnd(all))
    result.present.assign(all->operands.begin(), all->operands.end());
  else if (!Exprs::isConstantInt(all, 1))
    result.present.push_back(all);
  simplify(result, /*dropZeros=*/true);
  return result;
}

Terms NormalForm::scale(Terms a, const Fraction &by) {
  if (!a.present.empty() && by.num <= 0) {
    // - (-inf) is inf; what a row without a live key subtracts from its scores,
    // which are -inf themselves, makes them NaN.
    ExprRef present = both(a.present);
    if (Exprs::isConstantInt(present, 0))
      return atom(nan);
    Terms finite = a;
    finite.present.clear();
    return select(present, scale(finite, by), atom(infinite));
  }
  for (Term &term : a.terms)
    term.coefficient = presburger::reduce(term.coefficient * by);
  return a;
}

bool NormalForm::isInfinite(const Terms &x) const {
  return x.terms.size() == 1 && x.terms[0].guards.empty() &&
         x.terms[0].sums.empty() && x.terms[0].powerOf(infinite);
}

/// -inf times a positive number of the whole call is -inf; times any other it
/// is some number, which stands for itself where the masked one is not there.
Terms NormalForm::multiplyMasked(const Terms &a, const Terms &b) {
  const Terms &masked = a.present.empty() ? b : a;
  const Terms &other = a.present.empty() ? a : b;
  if (!isInfinite(other)) {
    bool positive =
        other.present.empty() && other.terms.size() == 1 &&
        other.terms[0].coefficient.num > 0 && other.terms[0].guards.empty() &&
        other.terms[0].sums.empty() &&
        llvm::all_of(other.terms[0].factors,
                     [&](const Power &f) { return isPositive(f.atom); });
    if (!positive) {
      ExprRef present = both(masked.present);
      if (Exprs::isConstantInt(present, 0))
        return atom(node("algebra.times", real(), {reify(a), reify(b)}));
      Terms finite = masked;
      finite.present.clear();
      return select(present, multiply(finite, other),
                    multiplyMasked(minusInfinity(), other));
    }
    note(Axiom::ExcludedKey);
  }
  Terms finite = masked;
  finite.present.clear();
  Terms result = multiply(finite, other);
  result.present = masked.present;
  return result;
}

/// 0 * inf is NaN; an element that is absent stays so.
std::optional<Terms> NormalForm::multiplyInfinite(const Terms &a,
                                                  const Terms &b) {
  auto vanishesOrNaN = [&](const Terms &x) {
    return llvm::all_of(x.terms, [&](const Term &term) {
      return term.coefficient.num == 0 || term.powerOf(nan);
    });
  };
  for (bool first : {true, false}) {
    const Terms &x = first ? a : b, &y = first ? b : a;
    if (!isInfinite(x) || !vanishesOrNaN(y))
      continue;
    bool isElement =
        !y.terms.empty() && llvm::all_of(y.terms, [&](const Term &term) {
          return term.powerOf(nan) && term.sums.empty() && !term.guards.empty();
        });
    return isElement ? y : atom(nan);
  }
  return std::nullopt;
}

Term NormalForm::multiply(const Term &x, const Term &y) {
  // The same sum twice runs over two variables.
  DenseMap<unsigned, ExprRef> to;
  for (unsigned v : y.sums)
    if (llvm::is_contained(x.sums, v))
      to[v] = exprs.var(exprs.freshVar(exprs.extent(v)));
  Term other = to.empty() ? y : renamed(y, to);
  if ((x.sums.empty() && !y.sums.empty() && !x.factors.empty()) ||
      (y.sums.empty() && !x.sums.empty() && !y.factors.empty()))
    note(Axiom::MoveFactor);
  Term term = x;
  term.coefficient = presburger::reduce(term.coefficient * other.coefficient);
  term.sums.append(other.sums);
  for (ExprRef guard : other.guards)
    term.addGuard(guard);
  for (const Power &factor : other.factors)
    term.multiply(factor.atom, factor.power);
  return term;
}

/// What a sum of nothing is over a divisor: 0, or NaN where that is 0 or NaN.
static Terms emptyOver(const Terms &a) {
  Terms result;
  for (const Term &term : a.terms) {
    Term zero = term;
    zero.coefficient = Fraction(0, 1);
    llvm::erase_if(zero.factors, [](const Power &factor) {
      return factor.power > 0 || factor.atom->freeVars.empty();
    });
    if (zero.sums.empty() && !zero.factors.empty())
      result.terms.push_back(std::move(zero));
  }
  return result;
}

Terms NormalForm::multiply(const Terms &a, const Terms &b) {
  if (!a.present.empty() || !b.present.empty())
    return multiplyMasked(a, b);
  if (std::optional<Terms> special = multiplyInfinite(a, b))
    return *special;
  if (a.isReal && b.isReal && a.terms.empty() != b.terms.empty())
    return emptyOver(a.terms.empty() ? b : a);
  Terms result;
  result.isReal = a.isReal || b.isReal;
  if (a.terms.size() * b.terms.size() > 1)
    note(Axiom::Distribute);
  if (isTooLarge(a.terms.size() * b.terms.size()))
    return number(Fraction(0, 1), result.isReal);
  for (const Term &x : a.terms)
    for (const Term &y : b.terms)
      result.terms.push_back(multiply(x, y));
  simplify(result, /*dropZeros=*/false);
  return result;
}

Term NormalForm::renamed(const Term &term,
                         const DenseMap<unsigned, ExprRef> &to) {
  Term result;
  result.coefficient = term.coefficient;
  for (unsigned v : term.sums) {
    ExprRef other = to.lookup(v);
    result.sums.push_back(other ? other->number : v);
  }
  for (ExprRef guard : term.guards)
    result.addGuard(exprs.substitute(guard, to));
  for (const Power &factor : term.factors)
    result.multiply(exprs.substitute(factor.atom, to), factor.power);
  return result;
}

Terms NormalForm::inverse(const Terms &a) {
  return byCases({a}, [&](ArrayRef<Terms> operands) -> Terms {
    Terms sum = operands[0];
    simplify(sum, /*dropZeros=*/true);
    if (!sum.present.empty())
      return atom(node("algebra.inverse", real(), {reify(sum)}));
    if (llvm::all_of(sum.terms, [&](const Term &term) {
          return term.coefficient.num == 0 || term.powerOf(nan);
        }))
      return atom(infinite);
    // What all terms share, and is there without their sums.
    std::pair<ExprRef, const Term *> first{nullptr, nullptr};
    for (const Term &term : sum.terms) {
      ExprRef form = reify(term);
      if (!first.first || form->id < first.first->id)
        first = {form, &term};
    }
    Term shared;
    shared.coefficient = first.second->coefficient;
    if (shared.coefficient.num == 0)
      shared.coefficient = Fraction(1, 1);
    for (const Power &factor : first.second->factors) {
      int power = factor.power;
      for (const Term &term : sum.terms) {
        int other = term.powerOf(factor.atom);
        if (factor.atom->usesAny(term.sums) || (other > 0) != (power > 0) ||
            other == 0)
          power = 0;
        else if (std::abs(other) < std::abs(power))
          power = other;
      }
      if (power)
        shared.multiply(factor.atom, power);
    }
    Terms rest = sum;
    for (Term &term : rest.terms) {
      term.coefficient =
          presburger::reduce(term.coefficient / shared.coefficient);
      for (const Power &factor : shared.factors)
        term.multiply(factor.atom, -factor.power);
    }
    Term result;
    result.coefficient =
        Fraction(shared.coefficient.den, shared.coefficient.num);
    for (const Power &factor : shared.factors)
      result.multiply(factor.atom, -factor.power);
    simplify(rest, /*dropZeros=*/true);
    if (!(rest.terms.size() == 1 && rest.terms[0].isConstant()))
      result.multiply(reify(rest), -1);
    Terms whole;
    whole.terms.push_back(result);
    return whole;
  });
}

Terms NormalForm::assume(const Terms &a, ExprRef c, bool holds) {
  Terms result;
  result.isReal = a.isReal;
  auto add = [&](ExprRef simpler, auto &&push) {
    if (Exprs::isConstantInt(simpler, 1))
      return true;
    if (Exprs::isConstantInt(simpler, 0))
      return false;
    if (isAnd(simpler))
      for (ExprRef part : simpler->operands)
        push(part);
    else
      push(simpler);
    return true;
  };
  for (const Term &term : a.terms) {
    Term other = term;
    other.guards.clear();
    bool keep = true;
    for (ExprRef guard : term.guards)
      keep &= add(under(guard, c, holds),
                  [&](ExprRef part) { other.addGuard(part); });
    if (keep)
      result.terms.push_back(std::move(other));
  }
  for (ExprRef part : a.present)
    if (!add(under(part, c, holds),
             [&](ExprRef p) { result.present.push_back(p); })) {
      result.terms.clear();
      result.present.assign({exprs.truth(false)});
      return result;
    }
  return result;
}

Terms NormalForm::select(ExprRef c, const Terms &yes, const Terms &no) {
  if (auto known = Exprs::constantInt(c))
    return *known ? yes : no;
  Terms result;
  result.isReal = yes.isReal || no.isReal;
  ExprRef other = negate(c);
  Terms sides[] = {assume(yes, c, true), assume(no, c, false)};
  for (int k : {0, 1}) {
    ExprRef guard = k ? other : c;
    for (Term term : sides[k].terms) {
      if (isAnd(guard))
        for (ExprRef part : guard->operands)
          term.addGuard(part);
      else
        term.addGuard(guard);
      result.terms.push_back(std::move(term));
    }
  }
  if (!sides[0].present.empty() || !sides[1].present.empty()) {
    SmallVector<ExprRef> first{c}, second{other};
    llvm::append_range(first, sides[0].present);
    llvm::append_range(second, sides[1].present);
    ExprRef present = either({both(first), both(second)});
    if (isAnd(present))
      result.present.assign(present->operands.begin(), present->operands.end());
    else if (!Exprs::isConstantInt(present, 1))
      result.present.push_back(present);
    if (Exprs::isConstantInt(present, 0))
      return minusInfinity();
    // What contradicts the condition goes first: then it is known, not said.
    simplify(result, /*dropZeros=*/false);
    SmallVector<ExprRef, 1> kept = result.present;
    for (ExprRef part : kept) {
      result = assume(result, part, true);
      result.present = kept;
    }
  }
  simplify(result, /*dropZeros=*/false);
  return result;
}

/// A condition outside of \p a's sums that its terms hang on.
static ExprRef openCondition(const Terms &a) {
  for (ExprRef part : a.present)
    if (!Exprs::constantInt(part))
      return part;
  for (const Term &term : a.terms)
    for (ExprRef guard : term.guards)
      if (!guard->usesAny(term.sums))
        return guard;
  return nullptr;
}

Terms NormalForm::byCases(ArrayRef<Terms> operands,
                          llvm::function_ref<Terms(ArrayRef<Terms>)> function,
                          unsigned depth) {
  ExprRef c = nullptr;
  for (const Terms &operand : operands)
    if (!c)
      c = openCondition(operand);
  if (!c || depth == mostCases || isTooLarge())
    return function(operands);
  SmallVector<Terms, 2> sides;
  for (bool holds : {true, false}) {
    SmallVector<Terms, 2> known;
    for (const Terms &operand : operands) {
      known.push_back(assume(operand, c, holds));
      simplify(known.back(), /*dropZeros=*/false);
    }
    sides.push_back(byCases(known, function, depth + 1));
  }
  return select(c, sides[0], sides[1]);
}

} // namespace heed
