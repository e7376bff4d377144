//===- Sizes.cpp - Extents as polynomials ---------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sizes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace heed;
using llvm::ArrayRef;
using llvm::DynamicAPInt;

//===----------------------------------------------------------------------===//
// Polynomials
//===----------------------------------------------------------------------===//

std::optional<int64_t> Size::constant() const {
  if (terms.empty())
    return 0;
  auto &[monomial, factor] = *terms.begin();
  if (terms.size() > 1 || !monomial.empty() || wrapToI64(factor) != factor)
    return std::nullopt;
  return int64_t(factor);
}

std::optional<unsigned> Size::asAtom() const {
  if (terms.size() == 1 && terms.begin()->first.size() == 1 &&
      terms.begin()->second == 1)
    return terms.begin()->first.front();
  return std::nullopt;
}

void Size::add(const Monomial &monomial, const DynamicAPInt &factor) {
  auto [it, isNew] = terms.try_emplace(monomial, factor);
  if (!isNew)
    it->second += factor;
  if (it->second == 0)
    terms.erase(it);
}

Size &Size::operator+=(const Size &other) {
  for (auto &[monomial, factor] : other.terms)
    add(monomial, factor);
  return *this;
}

Size &Size::operator-=(const Size &other) {
  for (auto &[monomial, factor] : other.terms)
    add(monomial, -factor);
  return *this;
}

Size &Size::operator*=(const Size &other) {
  Size product;
  for (auto &[m, f] : terms)
    for (auto &[n, g] : other.terms) {
      Monomial both;
      std::merge(m.begin(), m.end(), n.begin(), n.end(),
                 std::back_inserter(both));
      product.add(both, f * g);
    }
  return *this = std::move(product);
}

/// m / n for monomials.
static std::optional<Size::Monomial> quotient(const Size::Monomial &m,
                                              const Size::Monomial &n) {
  if (!llvm::includes(m, n))
    return std::nullopt;
  Size::Monomial rest;
  std::set_difference(m.begin(), m.end(), n.begin(), n.end(),
                      std::back_inserter(rest));
  return rest;
}

std::optional<Size> Size::dividedBy(const Size &divisor) const {
  if (divisor.terms.empty())
    return std::nullopt;
  // Long division by the divisor's greatest monomial.
  auto &[lead, by] = *divisor.terms.rbegin();
  constexpr unsigned kMaxSteps = 32;
  Size rest = *this, result;
  for (unsigned step = 0; !rest.terms.empty(); ++step) {
    bool found = false;
    for (auto it = rest.terms.rbegin(); it != rest.terms.rend(); ++it) {
      auto monomial = quotient(it->first, lead);
      if (!monomial || it->second % by != 0)
        continue;
      Size term;
      term.terms[*monomial] = it->second / by;
      result += term;
      rest -= term * divisor;
      found = true;
      break;
    }
    if (!found || step > kMaxSteps)
      return std::nullopt;
  }
  return result;
}

int64_t heed::wrapToI64(const DynamicAPInt &number) {
  if (number >= INT64_MIN && number <= INT64_MAX)
    return int64_t(number);
  const DynamicAPInt half = DynamicAPInt(INT64_MAX) + 1;
  DynamicAPInt rest = mod(number, half + half);
  return int64_t(rest < half ? rest : rest - half - half);
}

Size Size::wrapped() const {
  Size result;
  for (auto &[monomial, factor] : terms)
    result.add(monomial, DynamicAPInt(wrapToI64(factor)));
  return result;
}

double Size::estimate(double size) const {
  double total = 0;
  for (auto &[monomial, factor] : terms)
    total += double(wrapToI64(factor)) * std::pow(size, monomial.size());
  return total;
}

//===----------------------------------------------------------------------===//
// Division, minimum, maximum
//===----------------------------------------------------------------------===//

Size SizeTable::binary(Atom::Kind kind, const Size &a, const Size &b) {
  for (unsigned id = 0; id < atoms.size(); ++id)
    if (atoms[id].kind == kind && atoms[id].a == a && atoms[id].b == b)
      return Size::atom(id);
  Atom atom;
  atom.kind = kind;
  atom.a = a;
  atom.b = b;
  bool known = kind == Atom::FloorDiv ? nonNegative(a) && nonNegative(b - 1)
               : kind == Atom::Log2   ? true
                                      : nonNegative(a) && nonNegative(b);
  atom.least = known ? 0 : INT64_MIN;
  return Size::atom(addAtom(atom));
}

Size SizeTable::floorDiv(const Size &a, const Size &b) {
  Size size = simplify(a), by = simplify(b);
  auto n = size.constant(), d = by.constant();
  if (n && d && *d)
    return Size(llvm::floorDiv(DynamicAPInt(*n), DynamicAPInt(*d)));
  if (by.is(1))
    return size;
  if (auto whole = size.dividedBy(by))
    return *whole;
  // (d*p + r) // d = p + r // d, with a constant d.
  if (d && *d > 0) {
    const DynamicAPInt divisor(*d);
    Size whole, rest;
    for (auto &[monomial, factor] : size.terms) {
      DynamicAPInt q = llvm::floorDiv(factor, divisor),
                   r = factor - q * divisor;
      // Keep a small negative remainder as it is: (N - 1) // 2 reads better.
      if (factor < 0 && -factor < divisor)
        q = 0, r = factor;
      whole.add(monomial, q);
      rest.add(monomial, r);
    }
    if (auto r = rest.constant())
      return whole + Size(*r < 0 ? -1 : 0);
    return whole + binary(Atom::FloorDiv, rest, by);
  }
  return binary(Atom::FloorDiv, size, by);
}

Size SizeTable::mod(const Size &size, const Size &by) {
  return simplify(size - floorDiv(size, by) * by);
}

Size SizeTable::min(const Size &a, const Size &b) {
  if (nonNegative(b - a))
    return a;
  if (nonNegative(a - b))
    return b;
  return a < b ? binary(Atom::Min, a, b) : binary(Atom::Min, b, a);
}

Size SizeTable::max(const Size &a, const Size &b) {
  if (nonNegative(a - b))
    return a;
  if (nonNegative(b - a))
    return b;
  return a < b ? binary(Atom::Max, a, b) : binary(Atom::Max, b, a);
}

Size SizeTable::log2(const Size &size) {
  Size a = simplify(size);
  if (auto c = a.constant(); c && *c > 0)
    return Size(llvm::Log2_64(*c));
  return binary(Atom::Log2, a, Size());
}

//===----------------------------------------------------------------------===//
// Facts
//===----------------------------------------------------------------------===//

void SizeTable::exact(const Size &size, const Size &by) {
  Size q = floorDiv(size, by);
  if (auto id = q.asAtom())
    exacts.push_back({*id, by, size});
}

Size SizeTable::simplify(const Size &size) const {
  Size result = size;
  for (unsigned round = 0; round < 4; ++round) {
    bool changed = false;
    for (const Exact &e : exacts) {
      if (e.divisor.terms.size() != 1)
        continue;
      auto &[divisor, factor] = *e.divisor.terms.begin();
      Size::Monomial pattern = divisor;
      pattern.push_back(e.quotient);
      llvm::sort(pattern);
      for (auto &[monomial, c] : result.terms) {
        auto rest = quotient(monomial, pattern);
        if (!rest || c % factor != 0)
          continue;
        Size old, left;
        old.terms[monomial] = c;
        left.terms[*rest] = c / factor;
        result = result - old + left * e.dividend;
        changed = true;
        break;
      }
    }
    if (!changed)
      break;
  }
  return result;
}

void SizeTable::assumeZero(const Size &size) {
  Size s = simplify(size);
  if (!s.terms.empty() && !llvm::is_contained(zeros, s))
    zeros.push_back(s);
}

void SizeTable::assumeNonNegative(const Size &size) {
  if (!llvm::is_contained(nonNegatives, size))
    nonNegatives.push_back(size);
}

std::vector<std::pair<Size, bool>> SizeTable::assumptions() const {
  std::vector<std::pair<Size, bool>> all;
  for (const Size &size : zeros)
    all.push_back({size, true});
  for (const Exact &e : exacts)
    all.push_back({Size::atom(e.quotient) * e.divisor - e.dividend, true});
  for (const Size &size : nonNegatives)
    all.push_back({size, false});
  return all;
}

bool SizeTable::equal(const Size &a, const Size &b) const {
  Size d = simplify(a - b);
  if (d.terms.empty())
    return true;
  for (const Size &zero : zeros) {
    // d is a multiple of something that is known to be 0.
    if (d.dividedBy(zero))
      return true;
  }
  return false;
}

bool SizeTable::different(const Size &a, const Size &b) const {
  Size d = simplify(a - b);
  auto c = d.constant();
  return c && *c != 0;
}

/// Splits size = c * atom + r if the atom occurs at most once in a monomial.
static bool splitLinear(const Size &size, unsigned atom, Size &c, Size &r) {
  for (auto &[monomial, factor] : size.terms) {
    auto count = llvm::count(monomial, atom);
    if (count > 1)
      return false;
    if (count == 0) {
      r.terms[monomial] = factor;
      continue;
    }
    Size::Monomial rest = monomial;
    rest.erase(llvm::find(rest, atom));
    c.terms[rest] = factor;
  }
  return true;
}

/// Moves every atom to its least value: then all coefficients must be >= 0.
static bool isSumOfNonNegatives(const Size &size, ArrayRef<Atom> atoms,
                                ArrayRef<unsigned> positive) {
  Size shifted;
  for (auto &[monomial, factor] : size.terms) {
    Size term(factor);
    for (unsigned id : monomial) {
      int64_t least = atoms[id].least;
      if (least < 1 && llvm::is_contained(positive, id))
        least = 1;
      if (least == INT64_MIN)
        return false;
      term = term * (Size::atom(id) + Size(least));
    }
    shifted = shifted + term;
  }
  return llvm::all_of(shifted.terms,
                      [](const auto &term) { return term.second >= 0; });
}

llvm::SmallVector<unsigned>
SizeTable::withFactors(ArrayRef<unsigned> positive) const {
  llvm::SmallVector<unsigned> all(positive);
  for (const Exact &e : exacts) {
    auto product = e.dividend.asAtom();
    if (!product ||
        !isSumOfNonNegatives(Size::atom(*product) - 1, atoms, all) ||
        e.divisor.terms.size() != 1 ||
        !isSumOfNonNegatives(e.divisor, atoms, all))
      continue;
    all.push_back(e.quotient);
    llvm::append_range(all, e.divisor.terms.begin()->first);
  }
  return all;
}

bool SizeTable::nonNegative(const Size &size,
                            ArrayRef<unsigned> positive) const {
  return nonNegative(simplify(size), withFactors(positive), 0);
}

bool SizeTable::nonNegative(const Size &size, ArrayRef<unsigned> positive,
                            unsigned depth) const {
  if (auto c = size.constant())
    return *c >= 0;
  if (isSumOfNonNegatives(size, atoms, positive))
    return true;
  if (depth >= 4)
    return false;
  llvm::SmallVector<unsigned> ids;
  for (auto &term : size.terms)
    for (unsigned id : term.first)
      if (atoms[id].kind >= Atom::FloorDiv && !llvm::is_contained(ids, id))
        ids.push_back(id);
  auto sub = [&](const Size &s) {
    return nonNegative(simplify(s), positive, depth + 1);
  };
  for (unsigned id : ids) {
    const Atom &atom = atoms[id];
    Size c, r;
    if (!splitLinear(size, id, c, r))
      continue;
    bool up = sub(c), down = !up && sub(-c);
    if (!up && !down)
      continue;
    if (atom.kind == Atom::FloorDiv) {
      // q*d <= n and q*d >= n - d + 1; an integer above -1 is at least 0.
      if (!sub(atom.b - 1))
        continue;
      Size bound = down ? c * atom.a + r * atom.b
                        : c * (atom.a - atom.b + 1) + r * atom.b;
      if (sub(bound + atom.b - 1))
        return true;
    } else if (atom.kind == Atom::Log2) {
      // It is 0 at least, and below its argument.
      if (down ? sub(c * (atom.a - 1) + r) : sub(r))
        return true;
    } else {
      bool a = sub(c * atom.a + r), b = sub(c * atom.b + r);
      bool either = (atom.kind == Atom::Max) == up;
      if (either ? (a || b) : (a && b))
        return true;
    }
  }
  return false;
}

bool SizeTable::mentions(const Size &size, unsigned id) const {
  for (auto &term : size.terms)
    for (unsigned other : term.first) {
      if (other == id)
        return true;
      const Atom &atom = atoms[other];
      if (atom.kind >= Atom::FloorDiv &&
          (mentions(atom.a, id) || mentions(atom.b, id)))
        return true;
    }
  return false;
}

bool SizeTable::hasLoop(const Size &size) const {
  for (unsigned id = 0; id < atoms.size(); ++id)
    if (atoms[id].kind == Atom::Loop && mentions(size, id))
      return true;
  return false;
}

bool SizeTable::isInLoop(const Size &size) const {
  for (auto &term : size.terms)
    for (unsigned id : term.first) {
      const Atom &atom = atoms[id];
      if (atom.kind < Atom::FloorDiv ? atom.inLoop
                                     : isInLoop(atom.a) || isInLoop(atom.b))
        return true;
    }
  return false;
}

Size SizeTable::substitute(const Size &size, unsigned id, const Size &by) {
  Size result;
  for (auto &[monomial, factor] : size.terms) {
    Size term(factor);
    for (unsigned other : monomial) {
      if (other == id) {
        term = term * by;
        continue;
      }
      Atom atom = atoms[other];
      if (atom.kind >= Atom::FloorDiv) {
        Size a = substitute(atom.a, id, by), b = substitute(atom.b, id, by);
        term = term * (atom.kind == Atom::Log2       ? log2(a)
                       : atom.kind == Atom::FloorDiv ? floorDiv(a, b)
                       : atom.kind == Atom::Min      ? min(a, b)
                                                     : max(a, b));
      } else {
        term = term * Size::atom(other);
      }
    }
    result = result + term;
  }
  return result;
}
