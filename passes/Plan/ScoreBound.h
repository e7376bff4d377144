//===- ScoreBound.h - how large the scores of an attention may be -*- C++ -*-=//
// Of products of queries and keys, |q| |k| bounds each (Cauchy and Schwarz).
// With such bounds of its terms the score has one, if it is made of them by
// arithmetic alone: then a softmax may do without the maximum of its rows.
#ifndef HEED_PASSES_PLAN_SCOREBOUND_H
#define HEED_PASSES_PLAN_SCOREBOUND_H

#include "dialects/Attn/Dialect.h"

#include "mlir/IR/Builders.h"

namespace heed {

/// Scores times log2 e are to be at most this, the largest for which weights
/// 2^(score + bound) and their sums over 2^35 values of 1 stay below 2^127.
constexpr int64_t mostOfBoundedScore = 45;

/// Fewer queries or keys take less time than it takes to look for a bound:
/// that reads queries, keys and values once, 20 cycles a row, and gains a third
/// of a cycle for each query and key (AVX-512).
constexpr int64_t fewestOfBoundedScore = 512;

/// Writes at \p b an upper bound (f32) of the absolute score of \p op: \p terms
/// are those of its terms, \p outside finds scalars that the region captures.
/// NaN where one of them is. Null where arithmetic does not bound the score.
mlir::Value boundOfScore(mlir::OpBuilder &b, attn::AttentionLike op,
                         llvm::ArrayRef<mlir::Value> terms,
                         llvm::function_ref<mlir::Value(mlir::Value)> outside);

/// Whether \p op has scores that such a bound can be found for when it runs.
bool hasScoreBound(attn::AttentionLike op);

/// Whether it also is known to have enough queries and keys to gain by it.
bool gainsByScoreBound(attn::AttentionLike op);

} // namespace heed

#endif
