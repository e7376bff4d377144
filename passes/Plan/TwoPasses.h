//===- TwoPasses.h - an attention whose sums come first ---------*- C++ -*-===//
// A weight that is rounded to 16 bits must be divided before. Such an attention
// streams in two passes over the keys: the log-sum-exps of the rows, then what
// is made of them.
#ifndef HEED_PASSES_PLAN_TWOPASSES_H
#define HEED_PASSES_PLAN_TWOPASSES_H

#include "dialects/Attn/Dialect.h"

namespace heed {

/// Whether the sum of a row of \p op is asked before its weights meet the
/// values: its factor after the normaliser is no product with the weight.
bool needsSumFirst(attn::AttentionOp op);

/// Whether two passes can say \p op, which needs its sums first: its weights
/// are rounded to 16 bits, beside which the rounding of a log-sum-exp is
/// small.
bool hasTwoPasses(attn::AttentionOp op);

/// An attention in two passes. A log-sum-exp is one f32: of large scores it
/// has no digits left for the logarithm of the sum, and the op is computed as
/// it stands where a call finds one.
struct TwoPasses {
  attn::AttentionOp sums;    ///< whose log-sum-exp alone is read
  attn::AttentionOp weights; ///< ... of which this one makes the weights
  attn::AttentionOp whole;   ///< what stood there, for large scores
};

/// Replaces \p op, which hasTwoPasses().
TwoPasses inTwoPasses(mlir::OpBuilder &b, attn::AttentionOp op);

} // namespace heed

#endif
