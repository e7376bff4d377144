//===- NormalForm.h - one form for all expressions that are equal -*- C++ -*-=//
//
// Rewrites an expression by the axioms (Axioms.h) into the one form that all
// its equals share: sums of products with every sum outermost, products as
// multisets, conditions as guards of terms, indices as polynomials. Two
// expressions are equal modulo the axioms if their forms are one node.
//
// What a form holds for is said before: rows that have a live key or none, an
// extent that is 0. Without such a case every sum counts as not empty.
#ifndef HEED_PASSES_ALGEBRA_NORMALFORM_H
#define HEED_PASSES_ALGEBRA_NORMALFORM_H

#include "passes/Algebra/Axioms.h"
#include "passes/Algebra/Terms.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"
#include <functional>
#include <unordered_map>

namespace heed {

/// A row of scores, and what counts in it.
struct ScoreRow {
  /// Holds where no key of the row counts.
  ExprRef dead = nullptr;
  /// Of the row's maximum; null where only `where` counts.
  ExprRef maximum = nullptr;
  /// Over the keys, the weight of one: a term that holds it vanishes in a dead
  /// row.
  Term weight;
};

/// The case that a form holds for.
struct Case {
  std::optional<ScoreRow> row; ///< of which `dead` is known
  bool dead = false;
  ExprRef empty = nullptr; ///< the form of an extent that is 0
};

class NormalForm {
public:
  /// Of an op on a number and a condition: the number, or nothing where the
  /// condition does not hold.
  static constexpr llvm::StringLiteral elementName = "attn.element";

  /// \p expand gives what a read is computed from, or null where it is to stay
  /// a read.
  /// \p positive: forms of extents that are 1 at least.
  NormalForm(Exprs &exprs, std::function<ExprRef(ExprRef)> expand, Case known,
             const llvm::SetVector<ExprRef> &positive);

  /// The form of a number, integer or truth value. Null if it is too large.
  ExprRef of(ExprRef e);

  /// Rows of which was asked whether a key of them counts.
  llvm::ArrayRef<ScoreRow> rows() const { return found; }
  /// Forms of the extents of all reductions that are not known numbers.
  llvm::ArrayRef<ExprRef> extents() const { return ranges.getArrayRef(); }
  /// Forms of extents that are 1 at least, as far as they were met.
  const llvm::SetVector<ExprRef> &positives() const { return positive; }
  ExprRef extentOf(unsigned var) { return reify(terms(exprs.extent(var))); }
  const llvm::SmallBitVector &axioms() const { return used; }

private:
  // Numbers (NormalForm.cpp).
  const Terms &terms(ExprRef e);
  Terms compute(ExprRef e);
  Terms computeOp(ExprRef e);
  Terms computeReduce(ExprRef e);
  Terms underMaximum(Terms inner, llvm::SmallVectorImpl<unsigned> &vars);
  Terms scalar(ExprRef e);
  Terms constant(ExprRef e);
  Terms exponential(const Terms &of, bool base2);
  Terms logarithm(ExprRef op, const Terms &of);
  void multiplyByExponential(Term &product, const Term &term);
  const Terms *sumOfExponentials(const Term &log);
  Terms maximum(ExprRef op, llvm::ArrayRef<Terms> of);
  Terms opaque(ExprRef op, llvm::ArrayRef<Terms> operands);

  // Arithmetic (TermArithmetic.cpp).
  Terms number(const Fraction &value, bool isReal);
  Terms atom(ExprRef e);
  Terms minusInfinity();
  Terms add(const Terms &a, const Terms &b);
  Terms scale(Terms a, const Fraction &by);
  Terms multiply(const Terms &a, const Terms &b);
  Term multiply(const Term &x, const Term &y);
  Terms multiplyMasked(const Terms &a, const Terms &b);
  std::optional<Terms> multiplyInfinite(const Terms &a, const Terms &b);
  bool isInfinite(const Terms &x) const;
  Terms inverse(const Terms &a);
  Terms select(ExprRef condition, const Terms &yes, const Terms &no);
  Terms assume(const Terms &a, ExprRef condition, bool holds);
  /// \p function of \p operands, for each case of the conditions that they hang
  /// on.
  Terms byCases(llvm::ArrayRef<Terms> operands,
                llvm::function_ref<Terms(llvm::ArrayRef<Terms>)> function,
                unsigned depth = 0);
  void simplify(Terms &a, bool dropZeros);
  llvm::SmallVector<Term, 2> collect(Terms &a);
  std::optional<Term> joinBranches(const Term &x, const Term &y);
  bool finish(Term &term);
  bool isOfRow(ExprRef atom);
  bool vanishes(const Term &term);
  bool asksForLiveKey(const Term &term);
  bool isOfLiveKey(const Term &term);
  ExprRef reify(const Term &term);
  ExprRef reify(const Terms &a);
  Term renamed(const Term &term, const llvm::DenseMap<unsigned, ExprRef> &to);
  llvm::SmallVector<unsigned> binderOrder(const Term &term);
  ExprRef
  bind(llvm::StringRef combiner, llvm::ArrayRef<unsigned> vars,
       llvm::function_ref<ExprRef(const llvm::DenseMap<unsigned, ExprRef> &)>
           body,
       unsigned depth);

  // Conditions (Conditions.cpp).
  ExprRef condition(ExprRef e);
  ExprRef computeCondition(ExprRef e);
  ExprRef comparison(ExprRef e);
  ExprRef compareReals(ExprRef e);
  ExprRef any(ExprRef reduce, bool all);
  ExprRef some(llvm::ArrayRef<unsigned> vars, ExprRef c);
  ExprRef atLeastZero(const Terms &a);
  ExprRef isMinusInfinity(Terms value);
  bool isLogOfCount(const Terms &value);
  std::optional<Terms> maximumOfLogSumExp(const Terms &value);
  /// The number of which \p c, or its opposite, says that it is -inf.
  const Terms *askedOf(ExprRef c);
  ExprRef both(llvm::ArrayRef<ExprRef> list);
  ExprRef either(llvm::ArrayRef<ExprRef> list);
  ExprRef negate(ExprRef c);
  ExprRef under(ExprRef c, ExprRef known, bool holds);
  ExprRef leaf(ExprRef c);
  static bool isAnd(ExprRef e) { return e->isOp("algebra.and"); }
  static bool isOr(ExprRef e) { return e->isOp("algebra.or"); }

  // Indices (IndexRanges.cpp).
  bool neverNegative(const Terms &a, unsigned depth = 0);
  std::optional<bool> neverNegativeByExtremum(const Terms &a, unsigned depth);
  bool neverNegativeByQuotient(const Terms &a, unsigned depth);
  bool neverNegativeOfSizes(const Terms &a);
  Terms floorDivide(const Terms &a, const Terms &by);
  Terms extremum(bool greatest, llvm::ArrayRef<Terms> of);
  std::optional<Terms> shared(const Terms &a, const Terms &b);
  const llvm::SmallVector<Terms, 2> *operandsOf(bool greatest, const Terms &a);
  Terms clamped(bool greatest, const Terms &position, const Terms &limit);
  Terms pushed(const Terms &a, unsigned depth = 0);
  Terms replaced(const Terms &a, ExprRef what, const Terms &by);
  const llvm::SmallVector<Terms, 2> *isExtremum(const Term &term);
  bool isEmptyRange(unsigned var);
  bool isRead(ExprRef position, ExprRef extent);
  bool isSize(ExprRef atom);
  bool isPositive(ExprRef atom);

  ExprRef node(llvm::StringRef name, mlir::Type type,
               llvm::ArrayRef<ExprRef> operands, llvm::StringRef text = "");
  mlir::Type real() { return mlir::Float32Type::get(exprs.context); }
  mlir::Type index() { return mlir::IndexType::get(exprs.context); }
  mlir::Type truth() { return mlir::IntegerType::get(exprs.context, 1); }
  void note(Axiom axiom) { used.set(unsigned(axiom)); }

  Exprs &exprs;
  std::function<ExprRef(ExprRef)> expand;
  Case known;
  ExprRef nan, infinite; // what a division by 0 gives: an infinity or NaN
  std::unordered_map<ExprRef, Terms> done; // references to elements stay
  llvm::DenseMap<ExprRef, ExprRef> conditions;
  /// max and min of integers, by their node.
  std::unordered_map<ExprRef, llvm::SmallVector<Terms, 2>> extrema;
  /// floor(x / d) of a number d, by its node.
  std::unordered_map<ExprRef, std::pair<Terms, llvm::DynamicAPInt>> quotients;
  /// Numbers that are no integers, with what they were rounded from: a number
  /// that is one of them, or its reciprocal, but for a rounding is that.
  llvm::SmallVector<std::pair<double, Fraction>, 2> numbers;
  /// Each x of which was asked whether it is -inf, by the question; exp(x).
  std::unordered_map<ExprRef, Terms> asked;
  llvm::DenseMap<ExprRef, Term> weights;
  llvm::DenseMap<ExprRef, Term> maxima;          // of rows, with the weight
  std::unordered_map<ExprRef, Terms> logarithms; // of what
  llvm::SmallVector<ScoreRow, 1> found;
  llvm::SetVector<ExprRef> ranges, positive;
  /// Positions that are read of an axis, and its extent: they lie within.
  llvm::SetVector<std::pair<ExprRef, ExprRef>> reads;
  llvm::SmallBitVector used;
  /// Whether the form has become too large; \p more terms are made.
  bool isTooLarge(size_t more = 0);
  size_t work = 0;        ///< terms made
  const size_t nodesThen; ///< expressions when this began
  bool tooLarge = false;
};

} // namespace heed
#endif
