//===- TermArithmetic.cpp - sums of products, added and multiplied --------===//
#include "passes/Algebra/NormalForm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace heed {

/// More terms than any model's attention has: give up instead of taking long.
constexpr unsigned mostTerms = 200000;
constexpr unsigned mostCases = 6;

bool Term::uses(unsigned var) const {
  return llvm::any_of(guards, [&](ExprRef g) { return g->uses(var); }) ||
         llvm::any_of(factors,
                      [&](const Power &f) { return f.atom->uses(var); });
}

void Term::multiply(ExprRef atom, int power) {
  auto at = llvm::lower_bound(factors, atom, [](const Power &f, ExprRef a) {
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
  auto at = llvm::lower_bound(
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

Terms NormalForm::number(Fraction value, bool isReal) {
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

Terms NormalForm::special(ExprRef e) { return atom(e); }

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
      return special(nan);
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

Terms NormalForm::scale(Terms a, Fraction by) {
  if (!a.present.empty() && by.num <= 0) {
    // - (-inf): only what a row without a live key subtracts, which is NaN.
    return special(nan);
  }
  for (Term &term : a.terms)
    term.coefficient = presburger::reduce(term.coefficient * by);
  return a;
}

Terms NormalForm::multiply(const Terms &a, const Terms &b) {
  bool isReal = a.isReal || b.isReal;
  auto isInfinite = [&](const Terms &x) {
    return x.terms.size() == 1 && x.terms[0].guards.empty() &&
           x.terms[0].sums.empty() && x.terms[0].powerOf(infinite);
  };
  // -inf times a positive number of the whole call is -inf.
  if (!a.present.empty() || !b.present.empty()) {
    const Terms &masked = a.present.empty() ? b : a;
    const Terms &other = a.present.empty() ? a : b;
    if (isInfinite(other)) {
      Terms finite = masked;
      finite.present.clear();
      Terms result = multiply(finite, other);
      result.present = masked.present;
      return result;
    }
    bool positive =
        other.present.empty() && other.terms.size() == 1 &&
        other.terms[0].coefficient.num > 0 && other.terms[0].guards.empty() &&
        other.terms[0].sums.empty() &&
        llvm::all_of(other.terms[0].factors,
                     [&](const Power &f) { return isPositive(f.atom); });
    if (!positive)
      return atom(node("algebra.times", real(), {reify(a), reify(b)}));
    note(Axiom::ExcludedKey);
    Terms finite = masked;
    finite.present.clear();
    Terms result = multiply(finite, other);
    result.present = masked.present;
    return result;
  }
  auto vanishesOrNaN = [&](const Terms &x) {
    return llvm::all_of(x.terms, [&](const Term &term) {
      return term.coefficient.num == 0 || term.powerOf(nan);
    });
  };
  // 0 * inf is NaN; an element that is absent stays so.
  for (bool first : {true, false}) {
    const Terms &x = first ? a : b, &y = first ? b : a;
    if (!isInfinite(x) || !vanishesOrNaN(y))
      continue;
    bool isElement =
        !y.terms.empty() && llvm::all_of(y.terms, [&](const Term &term) {
          return term.powerOf(nan) && term.sums.empty() && !term.guards.empty();
        });
    return isElement ? y : special(nan);
  }

  Terms result;
  result.isReal = isReal;
  if (a.terms.size() * b.terms.size() > 1)
    note(Axiom::Distribute);
  work += a.terms.size() * b.terms.size();
  if (work > mostTerms) {
    tooLarge = true;
    return number(Fraction(0, 1), isReal);
  }
  for (const Term &x : a.terms)
    for (const Term &y : b.terms) {
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
      term.coefficient =
          presburger::reduce(term.coefficient * other.coefficient);
      term.sums.append(other.sums);
      for (ExprRef guard : other.guards)
        term.addGuard(guard);
      for (const Power &factor : other.factors)
        term.multiply(factor.atom, factor.power);
      result.terms.push_back(std::move(term));
    }
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
      return special(infinite);
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
    else
      result.present.push_back(present);
    if (Exprs::isConstantInt(present, 0))
      return minusInfinity();
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
  if (!c || depth == mostCases)
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
    return llvm::all_of(weight.guards,
                        [&](ExprRef guard) {
                          return llvm::is_contained(
                              term.guards, exprs.substitute(guard, to));
                        }) &&
           llvm::all_of(weight.factors, [&](const Power &factor) {
             int power = term.powerOf(exprs.substitute(factor.atom, to));
             return factor.power > 0 ? power >= factor.power
                                     : power <= factor.power;
           });
  };
  return matches(0);
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
  // exp(x) is 0 where x is -inf.
  for (ExprRef guard : SmallVector<ExprRef, 2>(term.guards)) {
    bool isNot = guard->isOp("algebra.not");
    ExprRef c = isNot ? guard->operand(0) : guard;
    if (!c->isOp("algebra.minus_infinite"))
      continue;
    ExprRef weight = node("math.exp", real(), {c->operand(0)});
    if (term.powerOf(weight) <= 0)
      continue;
    note(Axiom::ExcludedKey);
    if (!isNot)
      return false;
    llvm::erase(term.guards, guard);
  }
  if (vanishes(term)) {
    note(Axiom::ExcludedKey);
    if (!term.powerOf(infinite) && !term.powerOf(nan))
      return false;
    term.multiply(nan, 1);
  }
  if (term.powerOf(infinite) && term.coefficient.num == 0)
    term.multiply(nan, 1);
  if (term.powerOf(nan)) {
    term.factors.assign({Power{nan, 1}});
    term.coefficient = Fraction(1, 1);
    if (term.guards.empty())
      term.sums.clear();
  }
  return true;
}

void NormalForm::simplify(Terms &a, bool dropZeros) {
  work += a.terms.size();
  if (work > mostTerms) {
    tooLarge = true;
    a.terms.clear();
    return;
  }
  // Like terms are one.
  SmallVector<Term, 2> kept;
  SmallVector<ExprRef> forms;
  DenseMap<ExprRef, unsigned> position;
  for (Term &term : a.terms) {
    if (!finish(term))
      continue;
    ExprRef form = reify(term);
    auto [at, isNew] = position.try_emplace(form, kept.size());
    if (isNew) {
      kept.push_back(std::move(term));
      forms.push_back(form);
    } else if (!term.powerOf(nan)) {
      Fraction &sum = kept[at->second].coefficient;
      sum = presburger::reduce(sum + term.coefficient);
    }
  }
  // [c] x + [not c] x is x.
  for (unsigned k = 0; k < kept.size(); ++k)
    for (unsigned other = k + 1; other < kept.size(); ++other) {
      Term &x = kept[k], &y = kept[other];
      if (presburger::compare(x.coefficient, y.coefficient) != 0 ||
          x.guards.size() != y.guards.size())
        continue;
      ExprRef dropped = nullptr;
      for (ExprRef guard : x.guards)
        if (!llvm::is_contained(y.guards, guard) && !dropped)
          dropped = guard;
      if (!dropped || !llvm::is_contained(y.guards, negate(dropped)))
        continue;
      Term without = x, same = y;
      llvm::erase(without.guards, dropped);
      llvm::erase(same.guards, negate(dropped));
      if (reify(without) != reify(same))
        continue;
      kept[k] = without;
      kept.erase(kept.begin() + other);
      a.terms.assign(kept.begin(), kept.end());
      return simplify(a, dropZeros);
    }
  auto isNaN = [&](const Term &term) {
    return term.guards.empty() && term.powerOf(nan);
  };
  auto whole = llvm::find_if(kept, isNaN);
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

// ---- One node for a term

/// A hash of \p e that does not depend on how variables are called but for
/// \p marked.
static llvm::hash_code shapeOf(ExprRef e, unsigned marked,
                               DenseMap<ExprRef, llvm::hash_code> &known) {
  if (auto found = known.find(e); found != known.end())
    return found->second;
  llvm::hash_code hash = llvm::hash_combine(
      unsigned(e->kind), e->type.getAsOpaquePointer(),
      e->attr.getAsOpaquePointer(), e->value.getAsOpaquePointer(),
      e->name ? e->name->getAsOpaquePointer() : nullptr);
  if (e->kind == ExprKind::Var)
    hash = llvm::hash_combine(hash, e->number == marked);
  // The order of operands may hang on names: their sum does not.
  size_t sum = 0, ordered = 0;
  bool inOrder = e->kind == ExprKind::Read || e->operands.size() < 3;
  for (ExprRef operand : e->operands) {
    size_t h = shapeOf(operand, marked, known);
    sum += h;
    ordered = llvm::hash_combine(ordered, h);
  }
  hash = llvm::hash_combine(hash, inOrder && e->kind == ExprKind::Read ? ordered
                                                                       : sum);
  return known[e] = hash;
}

SmallVector<unsigned> NormalForm::binderOrder(const Term &term) {
  SmallVector<std::pair<size_t, unsigned>> keys;
  for (unsigned v : term.sums) {
    DenseMap<ExprRef, llvm::hash_code> known;
    size_t key = 0;
    for (ExprRef guard : term.guards)
      key += shapeOf(guard, v, known);
    for (const Power &factor : term.factors)
      key += llvm::hash_combine(shapeOf(factor.atom, v, known), factor.power);
    Terms extent = terms(exprs.extent(v));
    key = llvm::hash_combine(key, reify(extent)->id);
    keys.emplace_back(key, v);
  }
  llvm::sort(keys);
  SmallVector<unsigned> order;
  for (auto [key, v] : keys)
    order.push_back(v);
  return order;
}

/// A reduction over \p vars in this order, of what \p body makes of their new
/// names.
ExprRef NormalForm::bind(
    StringRef combiner, ArrayRef<unsigned> vars,
    llvm::function_ref<ExprRef(const DenseMap<unsigned, ExprRef> &)> body,
    unsigned depth) {
  DenseMap<unsigned, ExprRef> to;
  SmallVector<unsigned> binders;
  for (auto [k, v] : llvm::enumerate(vars)) {
    unsigned binder = (depth + 1) * 64 + k;
    binders.push_back(binder);
    to[v] = exprs.var(binder);
    exprs.setExtent(binder, reify(terms(exprs.extent(v))));
  }
  return exprs.reduce(OperationName(combiner, exprs.context), binders,
                      body(to));
}

ExprRef NormalForm::reify(const Term &term) {
  auto product = [&](const DenseMap<unsigned, ExprRef> &to) {
    SmallVector<ExprRef> operands;
    for (ExprRef guard : term.guards)
      operands.push_back(
          node("algebra.when", truth(), {exprs.substitute(guard, to)}));
    for (const Power &factor : term.factors) {
      ExprRef atom = exprs.substitute(factor.atom, to);
      operands.push_back(factor.power == 1
                             ? atom
                             : node("algebra.power", real(), {atom},
                                    std::to_string(factor.power)));
    }
    return operands.size() == 1 && term.guards.empty()
               ? operands[0]
               : node("algebra.product", real(), operands);
  };
  if (term.sums.empty())
    return product(DenseMap<unsigned, ExprRef>());
  unsigned depth = 0;
  for (ExprRef guard : term.guards)
    depth = std::max(depth, guard->depth);
  for (const Power &factor : term.factors)
    depth = std::max(depth, factor.atom->depth);
  // Variables that look alike are tried in every order.
  SmallVector<unsigned> order = binderOrder(term);
  ExprRef best = bind("arith.addf", order, product, depth);
  if (order.size() > 1 && order.size() <= 4) {
    SmallVector<unsigned> other = order;
    llvm::sort(other);
    do {
      ExprRef next = bind("arith.addf", other, product, depth);
      if (next->id < best->id)
        best = next;
    } while (std::next_permutation(other.begin(), other.end()));
  }
  return best;
}

ExprRef NormalForm::reify(const Terms &a) {
  ExprRef sum = nullptr;
  Type type = a.isReal ? real() : index();
  if (a.isConstant() && a.present.empty()) {
    Fraction value = presburger::reduce(a.constant());
    if (!a.isReal && value.den == 1)
      return exprs.index(int64_t(value.num));
    std::string text;
    llvm::raw_string_ostream(text) << value;
    return node("algebra.number", type, {}, text);
  }
  SmallVector<ExprRef> terms;
  for (const Term &term : a.terms) {
    ExprRef form = reify(term);
    std::string text;
    llvm::raw_string_ostream(text) << presburger::reduce(term.coefficient);
    bool isOne = term.coefficient.num == term.coefficient.den;
    terms.push_back(isOne && !term.isConstant()
                        ? form
                        : node("algebra.scaled", type, {form}, text));
  }
  sum = terms.size() == 1 ? terms[0] : node("algebra.sum", type, terms);
  if (a.present.empty())
    return sum;
  SmallVector<ExprRef> operands{
      node("algebra.present", truth(), {both(a.present)}), sum};
  return node("algebra.masked", type, operands);
}

} // namespace heed
