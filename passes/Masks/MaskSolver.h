//===- MaskSolver.h - a mask's condition as ranges and tests ----*- C++ -*-===//
// Conditions that separate into a part of i and a part of j become ranges of
// keys (MaskSolver.cpp), others become tests of intervals (MaskIntervals.cpp).
// Numbers are `i64`, whatever the mask computes in: a bound that leaves [0, M]
// must not wrap.
#ifndef HEED_PASSES_MASKS_MASKSOLVER_H
#define HEED_PASSES_MASKS_MASKSOLVER_H

#include "passes/Masks/MaskBounds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace heed {

class MaskSolver {
public:
  explicit MaskSolver(MaskBounds &bounds);
  /// Takes the factors of \p size, the number of queries or of keys, for
  /// positive: without any there are no tiles, or no piece within [0, M].
  void assumePositive(mlir::Value size);

  /// Pieces of a union, as they come: they may overlap or be empty.
  struct Pieces {
    llvm::SmallVector<MaskPiece, 2> reach, full;
  };
  Pieces solve(ExprRef condition, bool negated = false);
  /// The part of \p piece within [0, M].
  MaskPiece clamp(MaskPiece piece);

private:
  // ---- Numbers (MaskNumbers.cpp)
  /// sign * term
  struct Signed {
    int sign;
    ExprRef term;
  };
  using Sum = llvm::SmallVector<Signed, 4>;

  ExprRef number(int64_t value);
  ExprRef op(llvm::StringRef name, ExprRef a, ExprRef b) {
    return exprs.op(name, i64, {a, b});
  }
  ExprRef add(ExprRef a, ExprRef b);
  ExprRef sub(ExprRef a, ExprRef b);
  ExprRef mul(ExprRef a, ExprRef b) { return op("arith.muli", a, b); }
  ExprRef neg(ExprRef a) { return sub(zero, a); }
  ExprRef min(ExprRef a, ExprRef b) { return extreme("arith.minsi", a, b); }
  ExprRef max(ExprRef a, ExprRef b) { return extreme("arith.maxsi", a, b); }
  ExprRef extreme(llvm::StringRef name, ExprRef a, ExprRef b);
  ExprRef choose(ExprRef c, ExprRef a, ExprRef b) {
    return exprs.select(c, a, b, /*guard=*/false);
  }
  ExprRef compare(mlir::arith::CmpIPredicate predicate, ExprRef a, ExprRef b);
  ExprRef compare(mlir::arith::CmpFPredicate predicate, ExprRef a, ExprRef b);
  ExprRef conjunction(ExprRef a, ExprRef b);
  ExprRef disjunction(ExprRef a, ExprRef b);

  /// The same number in a narrower type, if \p e is its extension.
  static ExprRef strip(ExprRef e);
  /// \p e as an i64.
  ExprRef wide(ExprRef e);
  /// What stands in sums: \p e without extensions where it varies, otherwise
  /// cast.
  ExprRef plain(ExprRef e);
  /// Adds the terms of \p e to \p sum. Sums are kept in one form, so that equal
  /// bounds look equal and read well.
  void flatten(ExprRef e, int sign, Sum &sum);
  ExprRef total(llvm::ArrayRef<Signed> sum);
  /// How many bits an integer's value may take. Sums of values near to 2^63
  /// are left alone.
  unsigned bits(ExprRef e);
  bool fits(llvm::ArrayRef<Signed> sum);
  /// Sizes and literals that divide or multiply: known to be above 0.
  bool isPositiveSize(ExprRef e);
  bool varies(ExprRef e) { return e->uses(i) || e->uses(j); }
  bool isSingle(ExprRef e) { return e->uses(i) != e->uses(j); }
  bool readsData(ExprRef e);

  // ---- Ranges of keys (MaskSolver.cpp)
  MaskPiece all() { return {zero, keys}; }
  Pieces unknown(ExprRef e);
  Pieces both(const Pieces &a, const Pieces &b);
  Pieces either(Pieces a, const Pieces &b);
  Pieces few(Pieces pieces);
  MaskPiece eliminated(MaskPiece piece);
  Pieces data(ExprRef e, bool negated);
  Pieces comparison(ExprRef e, bool negated);
  std::optional<Pieces> atLeastZero(const Sum &sum);
  std::optional<Pieces> undoStep(const Signed &outer, const Sum &rest);
  std::optional<MaskPiece> invert(ExprRef g, bool atLeast, ExprRef bound);

  // ---- Intervals and tests (MaskIntervals.cpp)
  struct Interval {
    ExprRef low, high;
    ExprRef odd = nullptr; ///< reals: values may lie elsewhere
  };
  /// Whether a condition may hold at some place, and whether at all of them.
  struct Test {
    ExprRef may, must;
  };
  std::optional<Interval> interval(ExprRef e);
  std::optional<Interval> stepInterval(ExprRef e);
  std::optional<Interval> sumInterval(llvm::ArrayRef<Signed> sum);
  std::optional<Interval> takeRemainder(Sum &sum);
  std::optional<Interval> realInterval(ExprRef e);
  const MaskTable *table(ExprRef e);
  std::optional<Interval> tableInterval(ExprRef e);
  Test test(ExprRef e);
  Test negation(Test t) {
    return {exprs.logicalNot(t.must), exprs.logicalNot(t.may)};
  }
  Test integerTest(ExprRef e);
  Test realTest(ExprRef e);
  Test anything() { return {exprs.truth(true), exprs.truth(false)}; }

  MaskBounds &bounds;
  Exprs &exprs;
  unsigned i, j;
  mlir::Type i64, i1;
  ExprRef first, last, blockFirst, blockLast, keys, zero, one;
  llvm::DenseSet<ExprRef> clamped; ///< numbers of 64 bits, see plain()
  llvm::DenseSet<mlir::Value> positive;
  bool onlyRanges = false; ///< what depends on data counts as true
};

} // namespace heed
#endif
