//===- StreamingAttention.h - attention without an N x M buffer -===//
// Softmax attention as one pass over key blocks with a running maximum (Milakov
// and Gimelshein 2018; Rabe and Staats 2021; Dao et al. 2022), written as a
// Halide pipeline with its schedule. Vector lanes are queries.
#ifndef HEED_PASSES_SCHEDULE_STREAMINGATTENTION_H
#define HEED_PASSES_SCHEDULE_STREAMINGATTENTION_H

#include "dialects/Attn/Dialect.h"
#include "dialects/Halide/HalideDialect.h"
#include "dialects/Halide/Target.h"
#include "passes/Lower/Expressions.h"

#include <functional>

namespace heed {

/// A tile of queries for which key ranges are asked: i32 values of the
/// pipeline.
struct QueryTile {
  mlir::Value first; ///< first query; the tile has `size` of them, the last
                     ///< ones may lie behind the last query
  int64_t size;
  mlir::Value queries, keys;         ///< N and M
  llvm::ArrayRef<mlir::Value> batch; ///< one per batch dim
};

/// Which keys a tile of queries sees, as half-open ranges of key numbers.
struct KeyRanges {
  mlir::Value reachLow, reachHigh; ///< no query of the tile sees a key outside
  mlir::Value fullLow,
      fullHigh; ///< every query of the tile sees all keys inside; may be empty
};
using KeyRangesFn = std::function<KeyRanges(mlir::OpBuilder &, mlir::Location,
                                            const QueryTile &)>;

/// Why \p op cannot stream, or an empty string if it can.
llvm::StringRef whyNotStreaming(attn::AttentionOp op);

/// The funcs of the results of an attention; those of the log-sum-exp have one
/// var per batch and query dim.
struct StreamingResults {
  halide::FuncOp output, lse;
};

/// Writes \p op at \p b, inside a pipeline, with its schedule, and returns the
/// funcs of its results: one var per axis, innermost first, named "d<axis>". \p
/// scalars maps index and float values of the kernel to those of the pipeline.
/// \p ranges, if given, says which keys a tile reaches; without it every tile
/// evaluates `where` for all keys. Fails with an error at what has no
/// translation.
mlir::FailureOr<StreamingResults>
buildStreamingAttention(mlir::OpBuilder &b, attn::AttentionOp op,
                        const mlir::IRMapping &scalars, TensorReads &tensors,
                        const halide::Target &target,
                        const KeyRangesFn &ranges);

} // namespace heed

#endif
