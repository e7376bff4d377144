//===- StreamedAttention.h - an attention's state and its end ---*- C++ -*-===//
#ifndef HEED_PASSES_KERNELS_STREAMEDATTENTION_H
#define HEED_PASSES_KERNELS_STREAMEDATTENTION_H

#include "dialects/Attn/Dialect.h"

#include "mlir/IR/Builders.h"

namespace heed {

/// What attn-stream-attention makes of an attention: its state, and what makes
/// its results of that.
struct StreamedAttention {
  StreamedAttention() = default;
  /// Of \p online, whose state one op finishes.
  explicit StreamedAttention(attn::OnlineAttentionOp online);

  attn::OnlineAttentionOp online;
  attn::FinishOp finish;

  explicit operator bool() { return bool(online); }
  /// The results of \p finish by loop dims of \p online.
  mlir::AffineMap outputMap();
};

/// \p op, whose plan is to stream, as its state and its end, at \p b. The
/// regions of \p op are taken.
StreamedAttention stream(mlir::OpBuilder &b, attn::AttentionOp op);

/// The attention that both ops of \p streamed are, at \p b, without a plan.
attn::AttentionOp joined(mlir::OpBuilder &b, StreamedAttention streamed);

} // namespace heed

#endif
