//===- IndexRanges.cpp - what ranges say of integer expressions -----------===//
//
// A variable runs from 0 to its extent less one, and where it runs its extent
// is 1 at least. Sizes are never negative.
#include "passes/Algebra/NormalForm.h"

using namespace mlir;

namespace heed {

bool NormalForm::isEmptyRange(unsigned var) {
  Terms extent = terms(exprs.extent(var));
  if (extent.isConstant())
    return extent.constant().num <= 0;
  ExprRef form = reify(extent);
  if (form == known.empty)
    return true;
  ranges.insert(form);
  positive.insert(form);
  return false;
}

/// Whether \p position is one that was read of an axis of \p extent (null: of
/// any), whatever the variables are called.
bool NormalForm::isRead(ExprRef position, ExprRef extent) {
  auto without = [](ExprRef a, ExprRef b) {
    SmallVector<unsigned> rest;
    for (unsigned v : a->freeVars)
      if (!b->uses(v))
        rest.push_back(v);
    return rest;
  };
  for (auto [known, size] : reads) {
    if (extent && size != extent)
      continue;
    SmallVector<unsigned> from = without(known, position),
                          to = without(position, known);
    if (from.size() != to.size() || from.size() > 3)
      continue;
    do {
      DenseMap<unsigned, ExprRef> names;
      bool same = true;
      for (auto [a, b] : llvm::zip(from, to)) {
        names[a] = exprs.var(b);
        same &= extentOf(a) == extentOf(b);
      }
      if (same && exprs.substitute(known, names) == position)
        return true;
    } while (std::next_permutation(to.begin(), to.end()));
  }
  return false;
}

/// A size, a size divided by a number, or the extent of what runs.
bool NormalForm::isSize(ExprRef e) {
  if (positive.contains(e))
    return true;
  if (e->kind == ExprKind::Scalar) {
    Operation *def = e->value.getDefiningOp();
    return def && def->getName().getStringRef() == "tensor.dim";
  }
  if (auto quotient = quotients.find(e); quotient != quotients.end()) {
    Terms dividend = quotient->second.first;
    return neverNegative(dividend);
  }
  return Exprs::constantInt(e).value_or(-1) >= 0;
}

/// Certainly above 0, of a number of the whole call.
bool NormalForm::isPositive(ExprRef e) {
  if (e->isOp("arith.truncf") || e->isOp("math.sqrt") ||
      e->isOp("arith.sitofp"))
    return isPositive(e->operand(0));
  if (e->isOp("algebra.product"))
    return llvm::all_of(e->operands, [&](ExprRef o) { return isPositive(o); });
  if (e->isOp("algebra.scaled"))
    return !cast<DictionaryAttr>(e->attr)
                .getAs<StringAttr>("value")
                .getValue()
                .contains('-') &&
           isPositive(e->operand(0));
  return isSize(e) && (positive.contains(e) || Exprs::constantInt(e) > 0);
}

namespace {

/// Whether \p var stands inside of an atom of \p a.
bool standsInside(const Terms &a, unsigned var) {
  return llvm::any_of(a.terms, [&](const Term &term) {
    return llvm::any_of(term.factors, [&](const Power &f) {
      return f.atom->uses(var) &&
             (f.atom->kind != ExprKind::Var || f.power != 1);
    });
  });
}

} // namespace

/// The operands of \p term, if it is a greatest or least integer and no more.
const SmallVector<Terms, 2> *NormalForm::isExtremum(const Term &term) {
  if (term.factors.size() != 1 || term.factors[0].power != 1 ||
      !term.guards.empty() || !term.sums.empty())
    return nullptr;
  auto found = extrema.find(term.factors[0].atom);
  return found == extrema.end() ? nullptr : &found->second;
}

/// \p a with \p by for each occurrence of the atom \p what as a factor.
Terms NormalForm::replaced(const Terms &a, ExprRef what, const Terms &by) {
  Terms result;
  result.isReal = false;
  for (Term term : a.terms) {
    int power = term.powerOf(what);
    if (power)
      term.multiply(what, -power);
    Terms product;
    product.isReal = false;
    product.terms.push_back(term);
    for (int k = 0; k < power; ++k)
      product = multiply(product, by);
    result.terms.append(product.terms);
  }
  simplify(result, /*dropZeros=*/true);
  return result;
}

/// A sum with the greatest of several is at least the sum with each, one with
/// the least of several is the sum with one of them. These come first.
std::optional<bool> NormalForm::neverNegativeByExtremum(const Terms &a,
                                                        unsigned depth) {
  for (bool every : {true, false})
    for (const Term &term : a.terms) {
      const SmallVector<Terms, 2> *of = isExtremum(term);
      if (!of)
        continue;
      ExprRef form = term.factors[0].atom;
      bool greatest = form->isOp("algebra.max");
      if ((greatest != (term.coefficient.num > 0)) != every)
        continue;
      auto holdsWith = [&](const Terms &one) {
        return neverNegative(replaced(a, form, one), depth + 1);
      };
      SmallVector<Terms, 2> operands = *of;
      if (every)
        return llvm::all_of(operands, holdsWith);
      if (llvm::any_of(operands, holdsWith))
        return true;
      // Nor is the greatest of two below their mean.
      if (operands.size() != 2)
        return false;
      Terms both = add(operands[0], operands[1]), twice = a;
      for (Term &part : twice.terms)
        if (!part.powerOf(form))
          part.coefficient =
              presburger::reduce(part.coefficient * Fraction(2, 1));
      return neverNegative(replaced(twice, form, both), depth + 1);
    }
  return std::nullopt;
}

/// d * floor(x / d) is at most x.
bool NormalForm::neverNegativeByQuotient(const Terms &a, unsigned depth) {
  for (const Term &term : a.terms) {
    if (term.factors.size() != 1 || term.factors[0].power != 1 ||
        term.coefficient.num > 0)
      continue;
    auto quotient = quotients.find(term.factors[0].atom);
    if (quotient == quotients.end())
      continue;
    Terms rest = a;
    rest.terms.erase(rest.terms.begin() + (&term - a.terms.begin()));
    auto [dividend, divisor] = quotient->second;
    if (neverNegative(add(scale(rest, Fraction(divisor, 1)),
                          scale(dividend, term.coefficient)),
                      depth + 1))
      return true;
  }
  return false;
}

/// A polynomial of sizes: natural numbers, and those that a running variable
/// has are 1 more than one.
bool NormalForm::neverNegativeOfSizes(const Terms &a) {
  llvm::SetVector<ExprRef> sizes;
  for (const Term &term : a.terms)
    for (const Power &factor : term.factors) {
      if (factor.power < 0 || !isSize(factor.atom))
        return false;
      sizes.insert(factor.atom);
    }
  auto allPositive = [](const Terms &x) {
    return llvm::all_of(
        x.terms, [](const Term &term) { return term.coefficient.num >= 0; });
  };
  if (allPositive(a))
    return true;
  Terms shifted = a;
  for (ExprRef size : sizes)
    if (positive.contains(size))
      shifted = replaced(shifted, size,
                         add(atom(size), number(Fraction(1, 1), false)));
  return allPositive(shifted);
}

bool NormalForm::neverNegative(const Terms &a, unsigned depth) {
  if (!a.present.empty() || depth > 8)
    return false;
  if (a.isConstant())
    return a.constant().num >= 0;
  llvm::SetVector<unsigned> running;
  for (const Term &term : a.terms) {
    if (!term.sums.empty() || !term.guards.empty())
      return false;
    for (const Power &factor : term.factors)
      running.insert(factor.atom->freeVars.begin(),
                     factor.atom->freeVars.end());
  }
  if (std::optional<bool> known = neverNegativeByExtremum(a, depth))
    return *known;
  if (neverNegativeByQuotient(a, depth))
    return true;
  // What is linear in a variable is least at an end of its range.
  for (unsigned v : running) {
    ExprRef extent = exprs.extent(v);
    if (!extent || standsInside(a, v))
      continue;
    Terms last = add(terms(extent), number(Fraction(-1, 1), false));
    ExprRef variable = exprs.var(v);
    return neverNegative(replaced(a, variable, number(Fraction(0, 1), false)),
                         depth + 1) &&
           neverNegative(replaced(a, variable, last), depth + 1);
  }
  return neverNegativeOfSizes(a);
}

Terms NormalForm::floorDivide(const Terms &a, const Terms &by) {
  auto whole = [&]() {
    return atom(exprs.op("arith.floordivsi", index(), {reify(a), reify(by)}));
  };
  if (!a.present.empty() || by.terms.size() != 1 || !by.present.empty() ||
      !by.terms[0].guards.empty() || !by.terms[0].sums.empty() ||
      by.terms[0].coefficient.num <= 0)
    return whole();
  const Term &divisor = by.terms[0];
  Terms quotient, rest;
  quotient.isReal = rest.isReal = false;
  for (const Term &term : a.terms) {
    Term part = term;
    part.coefficient =
        presburger::reduce(part.coefficient / divisor.coefficient);
    bool divides = part.coefficient.den == 1;
    for (const Power &factor : divisor.factors) {
      divides &= term.powerOf(factor.atom) >= factor.power;
      part.multiply(factor.atom, -factor.power);
    }
    (divides ? quotient : rest).terms.push_back(divides ? part : term);
  }
  simplify(quotient, /*dropZeros=*/true);
  simplify(rest, /*dropZeros=*/true);
  Terms below = add(add(by, number(Fraction(-1, 1), false)),
                    scale(rest, Fraction(-1, 1)));
  if (rest.terms.empty() || (neverNegative(rest) && neverNegative(below)))
    return quotient;
  ExprRef remaining =
      exprs.op("arith.floordivsi", index(), {reify(rest), reify(by)});
  if (by.isConstant() && remaining->isOp("arith.floordivsi"))
    quotients[remaining] = {rest, by.constant().num};
  return add(quotient, atom(remaining));
}

/// \p position, if it is known not to be beyond \p limit; else nothing.
Terms NormalForm::clamped(bool greatest, const Terms &position,
                          const Terms &limit) {
  // A position that was read, clamped to the axis that it was read of.
  bool within = greatest
                    ? limit.isConstant() && limit.constant().num <= 0 &&
                          isRead(reify(position), nullptr)
                    : isRead(reify(position),
                             reify(add(limit, number(Fraction(1, 1), false))));
  return within ? position : Terms();
}

/// The greatest or least of \p of: without those that another decides.
Terms NormalForm::extremum(bool greatest, ArrayRef<Terms> of) {
  SmallVector<Terms, 2> operands;
  for (const Terms &operand : of) {
    Terms inner = pushed(operand);
    if (const SmallVector<Terms, 2> *same = operandsOf(greatest, inner))
      operands.append(*same);
    else
      operands.push_back(inner);
  }
  for (unsigned k = 0; k < operands.size(); ++k)
    for (unsigned other = 0; other < operands.size(); ++other) {
      if (k == other)
        continue;
      const Terms &high = operands[greatest ? other : k],
                  &low = operands[greatest ? k : other];
      bool decided =
          neverNegative(add(high, scale(low, Fraction(-1, 1)))) ||
          !clamped(greatest, operands[other], operands[k]).terms.empty();
      if (!decided)
        continue;
      operands.erase(operands.begin() + k);
      --k;
      break;
    }
  if (operands.size() == 1)
    return operands[0];
  // The least of greatest ones, never the other way round.
  if (greatest)
    for (unsigned k = 0; k < operands.size(); ++k) {
      const SmallVector<Terms, 2> *least = operandsOf(false, operands[k]);
      if (!least || least->size() > 4)
        continue;
      SmallVector<Terms, 2> each;
      for (const Terms &one : SmallVector<Terms, 2>(*least)) {
        SmallVector<Terms, 2> with = operands;
        with[k] = one;
        each.push_back(extremum(/*greatest=*/true, with));
      }
      return extremum(/*greatest=*/false, each);
    }
  else
    for (unsigned k = 0; k < operands.size(); ++k)
      for (unsigned other = k + 1; other < operands.size(); ++other)
        if (std::optional<Terms> one = shared(operands[k], operands[other])) {
          operands.erase(operands.begin() + other);
          operands[k] = *one;
          return extremum(greatest, operands);
        }
  SmallVector<ExprRef> forms;
  for (const Terms &operand : operands)
    forms.push_back(reify(operand));
  ExprRef form = node(greatest ? "algebra.max" : "algebra.min", index(), forms);
  extrema[form] = operands;
  return atom(form);
}

/// The least of max(C, P) and max(C, Q) is max(C, min(P, Q)): as one greatest
/// integer, if each of these least ones is decided.
std::optional<Terms> NormalForm::shared(const Terms &a, const Terms &b) {
  const SmallVector<Terms, 2> *first = operandsOf(true, a),
                              *second = operandsOf(true, b);
  if (!first || !second || first->size() > 4 || second->size() > 4)
    return std::nullopt;
  SmallVector<Terms, 2> both, p, q = *second;
  for (const Terms &x : *first) {
    ExprRef form = reify(x);
    auto *same =
        llvm::find_if(q, [&](const Terms &y) { return reify(y) == form; });
    (same == q.end() ? p : both).push_back(x);
    if (same != q.end())
      q.erase(same);
  }
  if (both.empty())
    return std::nullopt;
  SmallVector<Terms, 2> operands = both;
  for (const Terms &x : p)
    for (const Terms &y : q) {
      Terms least = extremum(/*greatest=*/false, {x, y});
      Terms less = scale(least, Fraction(-1, 1));
      if (llvm::any_of(both, [&](const Terms &c) {
            return neverNegative(add(c, less));
          }))
        continue;
      if (operandsOf(false, least))
        return std::nullopt;
      operands.push_back(least);
    }
  return extremum(/*greatest=*/true, operands);
}

/// What \p a is the greatest or least of; null if it is no such thing.
const SmallVector<Terms, 2> *NormalForm::operandsOf(bool greatest,
                                                    const Terms &a) {
  if (a.terms.size() != 1 ||
      a.terms[0].coefficient.num != a.terms[0].coefficient.den)
    return nullptr;
  const SmallVector<Terms, 2> *of = isExtremum(a.terms[0]);
  return of && a.terms[0].factors[0].atom->isOp(greatest ? "algebra.max"
                                                         : "algebra.min")
             ? of
             : nullptr;
}

/// What is added to a greatest or least integer, added to each of which it is.
Terms NormalForm::pushed(const Terms &a, unsigned depth) {
  if (a.isReal || depth > 8 || !a.present.empty())
    return a;
  // Into the one that was made last: it may hold others, which then cancel.
  const Term *into = nullptr;
  for (const Term &term : a.terms)
    if (isExtremum(term) && term.coefficient.den == 1 &&
        (term.coefficient.num == 1 || term.coefficient.num == -1) &&
        (!into || term.factors[0].atom->id > into->factors[0].atom->id))
      into = &term;
  if (!into || (a.terms.size() == 1 && into->coefficient.num == 1))
    return a;
  bool negative = into->coefficient.num < 0;
  bool greatest = into->factors[0].atom->isOp("algebra.max") != negative;
  SmallVector<Terms, 2> of = *isExtremum(*into), operands;
  Terms rest = a;
  rest.terms.erase(rest.terms.begin() + (into - a.terms.begin()));
  for (const Terms &one : of)
    operands.push_back(pushed(
        add(rest, scale(one, Fraction(negative ? -1 : 1, 1))), depth + 1));
  return extremum(greatest, operands);
}

} // namespace heed
