//===- Sizes.cpp - Extents as polynomials ---------------------------------===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"

using namespace heed::sema;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Polynomials
//===----------------------------------------------------------------------===//

std::optional<int64_t> Size::constant() const {
  if (terms.empty())
    return 0;
  if (terms.size() == 1 && terms.begin()->first.empty())
    return terms.begin()->second;
  return std::nullopt;
}

std::optional<unsigned> Size::asAtom() const {
  if (terms.size() == 1 && terms.begin()->first.size() == 1 &&
      terms.begin()->second == 1)
    return terms.begin()->first.front();
  return std::nullopt;
}

// Coefficients wrap like the i64 arithmetic that they stand for.
static int64_t wrapAdd(int64_t a, int64_t b) {
  return int64_t(uint64_t(a) + uint64_t(b));
}
static int64_t wrapMul(int64_t a, int64_t b) {
  return int64_t(uint64_t(a) * uint64_t(b));
}

static void addTerm(Size &size, const Size::Monomial &monomial, int64_t by) {
  auto [it, isNew] = size.terms.try_emplace(monomial, 0);
  it->second = wrapAdd(it->second, by);
  if (it->second == 0)
    size.terms.erase(it);
}

Size Size::operator+(const Size &other) const {
  Size sum = *this;
  for (auto &[monomial, factor] : other.terms)
    addTerm(sum, monomial, factor);
  return sum;
}

Size Size::operator-(const Size &other) const { return *this + other * -1; }

Size Size::operator*(const Size &other) const {
  Size product;
  for (auto &[m, f] : terms)
    for (auto &[n, g] : other.terms) {
      Monomial both = m;
      both.insert(both.end(), n.begin(), n.end());
      llvm::sort(both);
      addTerm(product, both, wrapMul(f, g));
    }
  return product;
}

static int64_t floorDivide(int64_t a, int64_t b) {
  if (b == -1)
    return wrapMul(a, -1);
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

//===----------------------------------------------------------------------===//
// Division, minimum, maximum
//===----------------------------------------------------------------------===//

/// m / n for monomials.
static std::optional<Size::Monomial> quotient(const Size::Monomial &m,
                                              const Size::Monomial &n) {
  Size::Monomial rest = m;
  for (unsigned atom : n) {
    auto it = llvm::find(rest, atom);
    if (it == rest.end())
      return std::nullopt;
    rest.erase(it);
  }
  return rest;
}

std::optional<Size> SizeTable::divide(const Size &size, const Size &by) const {
  if (by.terms.empty())
    return std::nullopt;
  // Long division by the greatest monomial of `by`.
  auto &lead = *by.terms.rbegin();
  Size rest = size, result;
  for (unsigned step = 0; !rest.terms.empty(); ++step) {
    bool found = false;
    for (auto it = rest.terms.rbegin(); it != rest.terms.rend(); ++it) {
      auto monomial = quotient(it->first, lead.first);
      if (!monomial || it->second % lead.second)
        continue;
      Size term;
      term.terms[*monomial] = it->second / lead.second;
      result = result + term;
      rest = rest - term * by;
      found = true;
      break;
    }
    if (!found || step > 32)
      return std::nullopt;
  }
  return result;
}

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
    return floorDivide(*n, *d);
  if (by.is(1))
    return size;
  if (auto whole = divide(size, by))
    return *whole;
  // (d*p + r) // d = p + r // d, with a constant d.
  if (d && *d > 0) {
    Size whole, rest;
    for (auto &[monomial, factor] : size.terms) {
      int64_t q = floorDivide(factor, *d), r = factor - q * *d;
      // Keep a small negative remainder as it is: (N - 1) // 2 reads better.
      if (factor < 0 && -factor < *d)
        q = 0, r = factor;
      if (q)
        whole.terms[monomial] = q;
      if (r)
        rest.terms[monomial] = r;
    }
    if (auto r = rest.constant())
      return whole + Size(floorDivide(*r, *d));
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
        if (!rest || c % factor)
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
    if (divide(d, zero))
      return true;
  }
  return false;
}

bool SizeTable::different(const Size &a, const Size &b) const {
  Size d = simplify(a - b);
  auto c = d.constant();
  return c && *c != 0;
}

bool SizeTable::nonNegative(const Size &size,
                            ArrayRef<unsigned> positive) const {
  return nonNegative(simplify(size), positive, 0);
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

bool SizeTable::nonNegative(const Size &size, ArrayRef<unsigned> positive,
                            unsigned depth) const {
  if (auto c = size.constant())
    return *c >= 0;
  // Move every atom to its least value: then all coefficients must be >= 0.
  Size shifted;
  bool bounded = true;
  for (auto &[monomial, factor] : size.terms) {
    Size term(factor);
    for (unsigned id : monomial) {
      int64_t least = atoms[id].least;
      if (least == INT64_MIN)
        bounded = false, least = 0;
      if (least < 1 && llvm::is_contained(positive, id))
        least = 1;
      term = term * (Size::atom(id) + Size(least));
    }
    shifted = shifted + term;
  }
  if (bounded && llvm::all_of(shifted.terms, [](const auto &term) {
        return term.second >= 0;
      }))
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

void SizeTable::divisionsOf(const Size &size, SizeUse &use) const {
  for (auto &term : size.terms)
    for (unsigned id : term.first) {
      const Atom &atom = atoms[id];
      bool isNew = llvm::none_of(use.divisions, [&](const auto &division) {
        return division.atom == id;
      });
      if (atom.kind < Atom::FloorDiv || !isNew)
        continue;
      divisionsOf(atom.a, use);
      divisionsOf(atom.b, use);
      if (atom.kind == Atom::FloorDiv)
        use.divisions.push_back(
            {id, nonNegative(atom.a), nonNegative(atom.b - 1)});
    }
}

SizeUse SizeTable::use(const Size &size) const {
  SizeUse result{size, {}, isInLoop(size)};
  divisionsOf(size, result);
  return result;
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
