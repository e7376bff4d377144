//===- TermSimplify.cpp - what a term hangs on, and like terms ------------===//
#include "passes/Algebra/NormalForm.h"

using namespace mlir;

namespace heed {

/// Whether \p atom is a part of the weights that all keys of the row share: it
/// falls away where the row is divided by its sum. If it alone is -inf the row
/// has no live key.
bool NormalForm::isOfRow(ExprRef atom) {
  return known.row && !atom->usesAny(known.row->weight.sums) &&
         known.row->weight.powerOf(atom);
}

/// Whether \p from, with variables renamed by \p to, can be \p wanted: what is
/// seen without renaming it.
static bool canBecome(ExprRef from, const DenseMap<unsigned, ExprRef> &to,
                      ExprRef wanted) {
  if (from->kind != wanted->kind || from->name != wanted->name ||
      from->value != wanted->value || from->type != wanted->type ||
      from->operands.size() != wanted->operands.size() ||
      from->freeVars.size() != wanted->freeVars.size())
    return false;
  return llvm::all_of(from->freeVars, [&](unsigned v) {
    auto renamed = to.find(v);
    return wanted->uses(renamed == to.end() ? v : renamed->second->number);
  });
}

/// Whether \p term holds the weight of a key in a row that has none that
/// counts.
bool NormalForm::vanishes(const Term &term) {
  if (!known.row || !known.dead)
    return false;
  const Term &weight = known.row->weight;
  llvm::SetVector<unsigned> candidates;
  for (ExprRef guard : term.guards)
    candidates.insert(guard->freeVars.begin(), guard->freeVars.end());
  for (const Power &factor : term.factors)
    candidates.insert(factor.atom->freeVars.begin(),
                      factor.atom->freeVars.end());
  // Every way to name the row's keys in this term.
  DenseMap<unsigned, ExprRef> to;
  std::function<bool(unsigned)> matches = [&](unsigned k) {
    if (k < weight.sums.size()) {
      for (unsigned v : candidates) {
        to[weight.sums[k]] = exprs.var(v);
        if (matches(k + 1))
          return true;
      }
      return false;
    }
    auto holds = [&](ExprRef guard) {
      return llvm::any_of(term.guards, [&](ExprRef own) {
        return canBecome(guard, to, own) && exprs.substitute(guard, to) == own;
      });
    };
    return llvm::all_of(weight.guards, holds) &&
           llvm::all_of(weight.factors, [&](const Power &factor) {
             if (isOfRow(factor.atom))
               return true;
             if (llvm::none_of(term.factors, [&](const Power &own) {
                   return canBecome(factor.atom, to, own.atom);
                 }))
               return false;
             int power = term.powerOf(exprs.substitute(factor.atom, to));
             return factor.power > 0 ? power >= factor.power
                                     : power <= factor.power;
           });
  };
  return matches(0);
}

/// Whether \p term is a sum over the keys of a row that has a live one, under
/// conditions that this one meets.
bool NormalForm::isOfLiveKey(const Term &term) {
  if (!known.row || known.dead ||
      term.sums.size() != known.row->weight.sums.size())
    return false;
  SmallVector<unsigned> order(term.sums.begin(), term.sums.end());
  llvm::sort(order);
  do {
    DenseMap<unsigned, ExprRef> to;
    for (auto [key, v] : llvm::zip(known.row->weight.sums, order))
      to[key] = exprs.var(v);
    if (llvm::all_of(term.guards, [&](ExprRef guard) {
          return llvm::any_of(known.row->weight.guards, [&](ExprRef live) {
            return exprs.substitute(live, to) == guard;
          });
        }))
      return true;
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

/// Whether \p term is there only where a key's score is above -inf, of a row
/// that has none such. What is part of that score stays: it may be -inf
/// elsewhere.
bool NormalForm::asksForLiveKey(const Term &term) {
  if (!known.row || !known.dead || !known.row->maximum)
    return false;
  return llvm::any_of(term.guards, [&](ExprRef guard) {
    auto weight = guard->isOp("algebra.not") ? weights.find(guard->operand(0))
                                             : weights.end();
    Term itself = term;
    itself.guards.clear();
    if (weight == weights.end() ||
        llvm::any_of(asked.at(weight->first).terms, [&](const Term &part) {
          return reify(itself) == reify(part);
        }))
      return false;
    // All of the score: what the row's keys share may be what is -inf.
    Term key = weight->second;
    bool isWhole =
        llvm::all_of(known.row->weight.factors, [&](const Power &factor) {
          return !isOfRow(factor.atom) ||
                 key.powerOf(factor.atom) == factor.power;
        });
    for (ExprRef other : term.guards)
      key.addGuard(other);
    return isWhole && vanishes(key);
  });
}

/// Simplifies what \p term hangs on. False if it is nothing.
bool NormalForm::finish(Term &term) {
  SmallVector<ExprRef> work(term.guards.begin(), term.guards.end());
  ExprRef all = both(work);
  if (Exprs::isConstantInt(all, 0))
    return false;
  term.guards.clear();
  if (isAnd(all)) {
    for (ExprRef part : all->operands)
      term.addGuard(part);
  } else if (!Exprs::isConstantInt(all, 1)) {
    term.addGuard(all);
  }
  if (asksForLiveKey(term))
    return false;
  // exp(x) is 0 where x is -inf.
  for (ExprRef guard : SmallVector<ExprRef, 2>(term.guards)) {
    bool isNot = guard->isOp("algebra.not");
    ExprRef c = isNot ? guard->operand(0) : guard;
    auto weight = weights.find(c);
    if (weight == weights.end() ||
        !llvm::all_of(weight->second.factors, [&](const Power &factor) {
          if (isOfRow(factor.atom))
            return true;
          int power = term.powerOf(factor.atom);
          return factor.power > 0 ? power >= factor.power
                                  : power <= factor.power;
        }))
      continue;
    note(Axiom::ExcludedKey);
    if (!isNot)
      return false;
    // Times infinity it may be another row's case yet.
    if (!term.powerOf(infinite))
      llvm::erase(term.guards, guard);
  }
  if (vanishes(term)) {
    // A weight of 0 does not hide what is no number; what stands under a
    // condition that never holds is not there.
    bool isNumber = !term.powerOf(infinite) && !term.powerOf(nan);
    bool hasGuardsAlone =
        !known.row->maximum || known.row->weight.factors.empty();
    if (isNumber || hasGuardsAlone)
      return false;
    term.multiply(nan, 1);
  }
  if (term.powerOf(infinite) && term.coefficient.num == 0)
    term.multiply(nan, 1);
  if (term.powerOf(nan)) {
    term.factors.assign({Power{nan, 1}});
    term.coefficient = Fraction(1, 1);
    if (isOfLiveKey(term))
      term.guards.clear();
    if (term.guards.empty())
      term.sums.clear();
  }
  return true;
}

/// Like terms are one.
SmallVector<Term, 2> NormalForm::collect(Terms &a) {
  SmallVector<Term, 2> kept;
  DenseMap<ExprRef, unsigned> position;
  for (Term &term : a.terms) {
    if (!finish(term))
      continue;
    auto [at, isNew] = position.try_emplace(reify(term), kept.size());
    if (isNew) {
      kept.push_back(std::move(term));
    } else if (!term.powerOf(nan)) {
      Fraction &sum = kept[at->second].coefficient;
      sum = presburger::reduce(sum + term.coefficient);
    }
  }
  return kept;
}

/// [c] x + [d] x is [c or d] x where never both hold.
std::optional<Term> NormalForm::joinBranches(const Term &x, const Term &y) {
  if (presburger::compare(x.coefficient, y.coefficient) != 0 ||
      x.guards.empty() || y.guards.empty() ||
      x.factors.size() != y.factors.size())
    return std::nullopt;
  SmallVector<ExprRef> common, first, second;
  for (ExprRef guard : x.guards)
    (llvm::is_contained(y.guards, guard) ? common : first).push_back(guard);
  for (ExprRef guard : y.guards)
    if (!llvm::is_contained(common, guard))
      second.push_back(guard);
  ExprRef c = both(first), d = both(second);
  if (!Exprs::isConstantInt(both({c, d}), 0))
    return std::nullopt;
  Term without = x, same = y;
  without.guards.clear();
  same.guards.clear();
  if (reify(without) != reify(same))
    return std::nullopt;
  common.push_back(either({c, d}));
  for (ExprRef guard : common)
    if (!Exprs::isConstantInt(guard, 1))
      without.addGuard(guard);
  return without;
}

void NormalForm::simplify(Terms &a, bool dropZeros) {
  if (isTooLarge(a.terms.size())) {
    a.terms.clear();
    return;
  }
  SmallVector<Term, 2> kept = collect(a);
  for (unsigned k = 0; k < kept.size(); ++k)
    for (unsigned other = k + 1; other < kept.size(); ++other)
      if (std::optional<Term> joined = joinBranches(kept[k], kept[other])) {
        kept[k] = *joined;
        kept.erase(kept.begin() + other);
        a.terms.assign(kept.begin(), kept.end());
        return simplify(a, dropZeros);
      }
  auto *whole = llvm::find_if(kept, [&](const Term &term) {
    return term.guards.empty() && term.powerOf(nan);
  });
  a.terms.clear();
  if (whole != kept.end()) {
    a.terms.push_back(*whole);
    return;
  }
  for (Term &term : kept) {
    bool isZero = term.coefficient.num == 0;
    // 0 * x is 0 for integers; for reals x may be NaN.
    if (isZero && (!a.isReal || (dropZeros && term.factors.empty())))
      continue;
    a.terms.push_back(std::move(term));
  }
}

} // namespace heed
