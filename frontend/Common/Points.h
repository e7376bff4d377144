//===- Points.h - At which index values is something evaluated? -*- C++ -*-===//
//
// Part of the Heed project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Questions about reads and divisors become questions whether a set of integer
// points is empty: the ranges of indices, the guards around, what is known
// about sizes, and the mistake that is looked for. MLIR's Presburger library
// answers. A product of an index and a size, or of sizes, is a column of its
// own with the bounds that its factors give it.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_FRONTEND_COMMON_POINTS_H
#define HEED_FRONTEND_COMMON_POINTS_H

#include "support/Sizes.h"

#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "llvm/ADT/SmallVector.h"

#include <map>

namespace heed::sema {

/// A sum of products: variable 0 stands for none, the monomial is of sizes.
class Form {
public:
  using Column = std::pair<unsigned, Size::Monomial>;

  Form() = default;
  Form(const Size &size) {
    for (auto &[monomial, factor] : size.terms)
      terms[{0, monomial}] = factor;
  }
  Form(int64_t constant) : Form(Size(constant)) {}
  static Form variable(unsigned id) {
    Form form;
    form.terms[{id, {}}] = 1;
    return form;
  }

  /// Adds `by` times `other`.
  void add(const Form &other, const llvm::DynamicAPInt &by);
  Form operator+(const Form &other) const;
  Form operator-(const Form &other) const;
  Form operator-() const { return Form() - *this; }
  Form times(const Size::Monomial &monomial,
             const llvm::DynamicAPInt &by) const;
  /// The product, if one of the two is free of variables.
  static std::optional<Form> product(const Form &a, const Form &b);
  /// The size that this is, if it is free of variables.
  std::optional<Size> asSize() const;

  std::map<Column, llvm::DynamicAPInt> terms;
};

/// form >= 0, or form == 0.
struct Constraint {
  Form form;
  bool isEquality = false;
};
using Conjunction = std::vector<Constraint>;
using Disjunction = std::vector<Conjunction>;

/// Variables with what bounds them, and constraints between them.
class Points {
public:
  explicit Points(const SizeTable &sizes) : sizes(sizes) {}

  struct Variable {
    std::string name; ///< of an index; empty for a part of an expression
    llvm::SmallVector<Form, 2> lower, upper;
  };
  unsigned addVariable(Variable variable) {
    variables.push_back(std::move(variable));
    return variables.size();
  }
  Variable &variable(unsigned id) { return variables[id - 1]; }

  /// What holds at every point.
  void assume(const Form &nonNegative) { facts.push_back({nonNegative}); }
  /// At least one of the conjunctions holds at every point.
  void restrict(const Disjunction &either);
  /// An atom of sizes that is at least 1 at every point, or that is bounded.
  void atLeast(unsigned atom, int64_t least);

  /// A part of what is asked stands for more than was written.
  bool relaxed = false;

  /// size >= 0. Not telling: it holds wherever the place is reached at all.
  struct Condition {
    Size size;
    bool tells;
  };
  struct Answer {
    enum {
      Never,   ///< no point
      Always,  ///< for all sizes that reach this; `sample` is one
      BySizes, ///< for the sizes for which all of some `when` hold
      Unknown
    } kind = Unknown;
    std::string sample;
    std::vector<std::vector<Condition>> when;
  };
  /// Is there a point at which `mistake` holds?
  Answer ask(const Conjunction &mistake) const;

private:
  struct System;
  std::vector<Form> factsOf(unsigned atom) const;
  std::optional<int64_t> least(unsigned atom) const;
  bool isNonNegative(const Size::Monomial &monomial) const;
  void addProduct(const Size::Monomial &monomial, System &system) const;
  void close(System &system) const;
  void addAssumptions(System &system) const;
  System systemOf(const Conjunction &mistake, const Conjunction &part) const;
  std::vector<Condition>
  conditions(const mlir::presburger::IntegerPolyhedron &set,
             llvm::ArrayRef<Form::Column> columns,
             const std::vector<Constraint> &domain, const System &system) const;
  std::string sampleText(llvm::ArrayRef<Form::Column> columns,
                         llvm::ArrayRef<llvm::DynamicAPInt> point) const;

  const SizeTable &sizes;
  std::vector<Variable> variables;
  Conjunction facts;
  Disjunction parts = {{}};
  std::map<unsigned, int64_t> leasts;
};

} // namespace heed::sema

#endif // HEED_FRONTEND_COMMON_POINTS_H
