//===- Sizes.h - Extents as polynomials -------------------------*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An extent, an offset or any other integer that is fixed for a call is a
// polynomial over atoms: dims, loop variables, floor divisions, minima, maxima
// and logarithms. Whether two are equal, or one is never negative, is decided
// here and nowhere else: by their form and by what was assumed.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_SUPPORT_SIZES_H
#define HEED_SUPPORT_SIZES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DynamicAPInt.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace heed {

/// A polynomial with exact integer coefficients. A monomial is the sorted list
/// of its atoms, repeated for powers; coefficients are not 0.
class Size {
public:
  using Monomial = std::vector<unsigned>;

  Size(int64_t constant = 0) { add({}, llvm::DynamicAPInt(constant)); }
  explicit Size(const llvm::DynamicAPInt &constant) { add({}, constant); }
  static Size atom(unsigned id) {
    Size size;
    size.terms[{id}] = 1;
    return size;
  }

  /// The value, if it is the same for all sizes and an i64.
  std::optional<int64_t> constant() const;
  bool is(int64_t value) const { return constant() == value; }
  /// The atom that this is, if it is one.
  std::optional<unsigned> asAtom() const;
  bool operator==(const Size &other) const { return terms == other.terms; }
  bool operator!=(const Size &other) const { return terms != other.terms; }
  bool operator<(const Size &other) const { return terms < other.terms; }

  Size &operator+=(const Size &other);
  Size &operator-=(const Size &other);
  Size &operator*=(const Size &other);
  friend Size operator+(Size a, const Size &b) { return a += b; }
  friend Size operator-(Size a, const Size &b) { return a -= b; }
  friend Size operator*(Size a, const Size &b) { return a *= b; }
  Size operator-() const { return Size(0) - *this; }

  /// The quotient by \p divisor, if it is a polynomial.
  std::optional<Size> dividedBy(const Size &divisor) const;
  /// What arithmetic of i64 makes of it: every coefficient is one.
  Size wrapped() const;
  /// The value with every atom \p size.
  double estimate(double size) const;

  void add(const Monomial &monomial, const llvm::DynamicAPInt &factor);
  std::map<Monomial, llvm::DynamicAPInt> terms;
};

/// The i64 that is congruent to \p number.
int64_t wrapToI64(const llvm::DynamicAPInt &number);

/// What a polynomial does not look into.
struct Atom {
  enum Kind { Dim, Loop, FloorDiv, Min, Max, Log2 } kind = Dim;
  std::string name;    ///< Dim, Loop
  bool inLoop = false; ///< Dim, Loop: it is known only inside a rolled loop
  Size a, b;           ///< FloorDiv, Min, Max; Log2 of a
  int64_t least = 0;   ///< a lower bound
};

/// The atoms of one model, and what is known about them.
class SizeTable {
public:
  /// \p byName: factors are printed in alphabetical order, for atoms that come
  /// in no order that means something to a reader.
  explicit SizeTable(bool byName = false) : byName(byName) {}

  unsigned addAtom(Atom atom) {
    atoms.push_back(std::move(atom));
    return atoms.size() - 1;
  }
  const Atom &atom(unsigned id) const { return atoms[id]; }
  size_t numAtoms() const { return atoms.size(); }
  Size dim(llvm::StringRef name, bool inLoop = false) {
    return Size::atom(addAtom({Atom::Dim, name.str(), inLoop, {}, {}, 0}));
  }
  Size loop(llvm::StringRef name, int64_t least) {
    return Size::atom(addAtom({Atom::Loop, name.str(), true, {}, {}, least}));
  }

  /// From now on the atom is known to be \p least or more.
  void atLeast(unsigned id, int64_t least) {
    atoms[id].least = std::max(atoms[id].least, least);
  }

  /// Rounds to minus infinity; `by` must not be 0.
  Size floorDiv(const Size &size, const Size &by);
  Size mod(const Size &size, const Size &by);
  Size min(const Size &a, const Size &b);
  Size max(const Size &a, const Size &b);
  /// The floor of the logarithm to base 2; `size` must be 1 or more.
  Size log2(const Size &size);

  /// Rewrites with what is known: (D//H)*H is D once `exact` said so.
  Size simplify(const Size &size) const;
  /// From now on size // by divides exactly.
  void exact(const Size &size, const Size &by);
  /// From now on size is 0.
  void assumeZero(const Size &size);
  bool equal(const Size &a, const Size &b) const;
  /// Never equal: they differ by a number that is not 0.
  bool different(const Size &a, const Size &b) const;

  /// From now on size is 0 or more.
  void assumeNonNegative(const Size &size);
  /// All that was assumed: sizes that are 0, and (second false) those that are
  /// not negative.
  std::vector<std::pair<Size, bool>> assumptions() const;

  /// Was that assumed? (Of sums see `nonNegative`.)
  bool isAssumed(const Size &nonNegative) const {
    return llvm::is_contained(nonNegatives, nonNegative);
  }

  /// `positive` and the atoms that are at least 1 with them: a product that is
  /// positive and of no negative factor has positive ones.
  llvm::SmallVector<unsigned>
  withFactors(llvm::ArrayRef<unsigned> positive) const;

  /// Proves size >= 0. The atoms in `positive` are at least 1. False: unknown.
  bool nonNegative(const Size &size,
                   llvm::ArrayRef<unsigned> positive = {}) const;

  /// Does the size depend on a loop variable, at any depth?
  bool hasLoop(const Size &size) const;
  /// Is the size known only inside a rolled loop?
  bool isInLoop(const Size &size) const;
  bool mentions(const Size &size, unsigned id) const;
  /// With `by` in place of the atom `id`, at any depth.
  Size substitute(const Size &size, unsigned id, const Size &by);

  std::string str(const Size &size) const;

  /// What was assumed, to go back to.
  struct Facts {
    size_t zeros, exacts, nonNegatives;
  };
  Facts facts() const {
    return {zeros.size(), exacts.size(), nonNegatives.size()};
  }
  void restoreFacts(Facts facts) {
    zeros.resize(facts.zeros);
    exacts.resize(facts.exacts);
    nonNegatives.resize(facts.nonNegatives);
  }

private:
  std::string str(const Size::Monomial &monomial, bool isFactor) const;
  bool nonNegative(const Size &size, llvm::ArrayRef<unsigned> positive,
                   unsigned depth) const;
  Size binary(Atom::Kind kind, const Size &a, const Size &b);

  bool byName;
  std::vector<Atom> atoms;
  std::vector<Size> zeros, nonNegatives;
  /// quotient atom * divisor = dividend
  struct Exact {
    unsigned quotient = 0;
    Size divisor, dividend;
  };
  std::vector<Exact> exacts;
};

} // namespace heed

#endif // HEED_SUPPORT_SIZES_H
