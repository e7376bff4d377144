//===- Normaliser.h - how scores become weights -----------------*- C++ -*-===//
// All that is particular to one normaliser is said once, in Normaliser.cpp. The
// decomposition, the verifier, raising and schedules ask it.
#ifndef HEED_DIALECTS_ATTN_NORMALISER_H
#define HEED_DIALECTS_ATTN_NORMALISER_H

#include "dialects/Attn/Dialect.h"

namespace heed::attn {

/// The operations in which a weight is written, as whoever asks builds them:
/// `math` ops in the decomposition, vectors of a kernel's own in schedules.
struct WeightArithmetic {
  virtual ~WeightArithmetic() = default;
  virtual mlir::Value real(double value) = 0;
  virtual mlir::Value negate(mlir::Value x) = 0;
  virtual mlir::Value add(mlir::Value x, mlir::Value y) = 0;
  virtual mlir::Value multiply(mlir::Value x, mlir::Value y) = 0;
  virtual mlir::Value divide(mlir::Value x, mlir::Value y) = 0;
  /// NaN if either is.
  virtual mlir::Value larger(mlir::Value x, mlir::Value y) = 0;
  virtual mlir::Value exp(mlir::Value x) = 0;
  /// 0 where \p x is below 0, else \p y: also where \p x is NaN.
  virtual mlir::Value unlessBelow0(mlir::Value x, mlir::Value y) = 0;
};

/// In `arith` and `math` ops.
struct UpstreamArithmetic : WeightArithmetic {
  UpstreamArithmetic(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type)
      : b(b), loc(loc), type(type) {}
  mlir::Value real(double value) override;
  mlir::Value negate(mlir::Value x) override;
  mlir::Value add(mlir::Value x, mlir::Value y) override;
  mlir::Value multiply(mlir::Value x, mlir::Value y) override;
  mlir::Value divide(mlir::Value x, mlir::Value y) override;
  mlir::Value larger(mlir::Value x, mlir::Value y) override;
  mlir::Value exp(mlir::Value x) override;
  mlir::Value unlessBelow0(mlir::Value x, mlir::Value y) override;

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Type type;
};

/// One way to make weights of the scores of a row. Without a threshold,
/// divided by their sum or not, weights merge by addition: the state of a row
/// is its sums, and finishing it is that division. A threshold is asked of all
/// scores of a row at once: nothing merges.
struct Normaliser {
  Map map;
  /// Domain: a key whose score is -inf is absent. Else `where` alone excludes.
  bool excludesLowest;
  /// State: what all scores of a row are taken less leaves the shares of their
  /// sum alone. So a maximum may be subtracted, is part of the state, and
  /// merging rescales; a log-sum-exp and a sink have a meaning.
  bool isShiftable;
  /// Sign: no weight is below 0.
  bool isNonNegative;
  /// The weight takes an exponential of the score (or of its negative): scores
  /// may be kept times log2 e.
  bool takesExponential;
  /// The weight is linear in the score: without a mask, a chain of products.
  bool isLinear;
  mlir::Value (*weight)(WeightArithmetic &, mlir::Value score);
  /// Finish, of those that have a threshold: scores are taken less the one for
  /// which the weights of a row sum to 1. The weight is convex in the score;
  /// this is its derivative, from above where it has two, which sums to 1 at
  /// least where the weights do.
  mlir::Value (*slope)(WeightArithmetic &, mlir::Value score) = nullptr;
  /// ... and the score whose weight is 1: a row's threshold lies at most so far
  /// below its largest score.
  double one = 0;

  bool hasThreshold() const { return slope != nullptr; }
  /// Newton's step from \p threshold, less which the weights of a row sum to
  /// \p sum and their derivatives to \p slope. Steps from the left never pass
  /// the root, and the product of excess and slope falls to a quarter with
  /// each: after `steps` of them the sum of up to 2^20 weights is 1 to 2^-24.
  static mlir::Value nextThreshold(WeightArithmetic &a, mlir::Value threshold,
                                   mlir::Value sum, mlir::Value slope);
  static constexpr int64_t steps = 32;

  static const Normaliser &of(Map map);
  static const Normaliser &of(AttentionLike op) { return of(op.getMap()); }
};

} // namespace heed::attn

#endif
