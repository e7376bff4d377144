//===- Terms.h - sums of products of atoms ----------------------*- C++ -*-===//
//
// The normal form of a number: a sum of terms, each a sum over bound variables
// of a product of powers of atoms, where conditions hold. Products are
// multisets: a factor that occurs twice has the power 2.
#ifndef HEED_PASSES_ALGEBRA_TERMS_H
#define HEED_PASSES_ALGEBRA_TERMS_H

#include "passes/Algebra/TensorExpr.h"

#include "mlir/Analysis/Presburger/Fraction.h"

namespace heed {

using mlir::presburger::Fraction;

/// atom^power, the power is not 0.
struct Power {
  ExprRef atom;
  int power;
};

/// sum over `sums` of coefficient * factors where all `guards` hold, and
/// nothing (not even 0 * NaN) where one does not.
struct Term {
  Fraction coefficient = Fraction(1, 1);
  llvm::SmallVector<unsigned, 2> sums;
  llvm::SmallVector<ExprRef, 2> guards; // by id, each once
  llvm::SmallVector<Power, 4> factors;  // by id of the atom, each once

  bool uses(unsigned var) const;
  bool isConstant() const {
    return sums.empty() && guards.empty() && factors.empty();
  }
  /// Multiplies by atom^power.
  void multiply(ExprRef atom, int power);
  void addGuard(ExprRef guard);
  int powerOf(ExprRef atom) const;
};

/// The sum of `terms` where all of `present` hold, -inf where one does not.
struct Terms {
  /// More than the proof of any known attention makes (50,000: clipped offsets
  /// of symbolic bounds): beyond it a proof gives up instead of taking long.
  static constexpr size_t most = 200000;
  /// The same of expressions (1,430: tables of relative positions): terms may
  /// be few and large.
  static constexpr size_t mostNodes = 200000;

  llvm::SmallVector<Term, 2> terms;
  llvm::SmallVector<ExprRef, 1> present;
  bool isReal = true;

  bool isConstant() const {
    return present.empty() &&
           (terms.empty() || (terms.size() == 1 && terms[0].isConstant()));
  }
  /// The value of a constant.
  Fraction constant() const {
    return terms.empty() ? Fraction(0, 1) : terms[0].coefficient;
  }
};

} // namespace heed
#endif
