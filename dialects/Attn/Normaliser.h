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
  virtual mlir::Value divide(mlir::Value x, mlir::Value y) = 0;
  /// NaN if either is.
  virtual mlir::Value larger(mlir::Value x, mlir::Value y) = 0;
  virtual mlir::Value exp(mlir::Value x) = 0;
};

/// One way to make weights of the scores of a row. Divided by their sum or not,
/// weights merge by addition: the state of a row is its sums, and finishing it
/// is that division.
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

  static const Normaliser &of(Map map);
  static const Normaliser &of(AttentionOp op) { return of(op.getMap()); }
};

} // namespace heed::attn

#endif
