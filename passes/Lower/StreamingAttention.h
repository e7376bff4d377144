//===- StreamingAttention.h - attention without an N x M buffer -*- C++ -*-===//
// Softmax attention as one pass over key blocks with a running maximum (Milakov
// and Gimelshein 2018; Rabe and Staats 2021; Dao et al. 2022), written as a
// Halide pipeline with its schedule. Vector lanes are queries.
#ifndef HEED_PASSES_LOWER_STREAMINGATTENTION_H
#define HEED_PASSES_LOWER_STREAMINGATTENTION_H

#include "dialects/Attn/Dialect.h"
#include "dialects/Halide/HalideDialect.h"
#include "dialects/Halide/Target.h"
#include "passes/Kernels/StreamedAttention.h"
#include "passes/Lower/Expressions.h"
#include "passes/Lower/MaskTiling.h"
#include "passes/Schedule/KernelInfo.h"

namespace heed {

struct MaskBounds;

/// Neighbours along the innermost batch dim h that read the same rows of every
/// operand with keys, as query heads of a group do: the rows of `(h * groups)
/// floordiv count`, or rows without h (null).
struct SharedKeys {
  mlir::AffineExpr groups, count; ///< of symbols
};
std::optional<SharedKeys> sharedKeys(attn::AttentionLike op);

/// Of how many such neighbours a task of rows computes a block at a time, at
/// most: what it makes of them lies in L1.
constexpr int64_t mostMembers = 8;

/// Inputs of rows of `sharedKeys`: how many neighbours are a group, computed
/// block by block together, and how many groups share their keys.
constexpr llvm::StringLiteral kMembersInput = "members",
                              kNeighboursInput = "neighbours";

/// Input of the split form: in how many parts the keys are cut, 1 at least.
constexpr llvm::StringLiteral kPartsInput = "parts_of_keys";

/// The funcs of the results of an attention; those of the log-sum-exp have one
/// var per batch and query dim.
struct StreamingResults {
  halide::FuncOp output, lse;
};

/// Writes \p op at \p b, inside a pipeline, in a \p form that its plan has,
/// with its schedule, and returns the funcs of its results: one var per axis,
/// innermost first, named "d<axis>". \p scalars maps index and float values of
/// the kernel to those of the pipeline.
/// \p bounds, if given, says which keys a tile reaches; without it every tile
/// evaluates `where` for all keys. If they need tables, these are further
/// inputs of the pipeline, and \p tiling says how they are cut. Rows of
/// `sharedKeys` have two more, kMembersInput and kNeighboursInput, parts of the
/// keys one, kPartsInput. Fails with an error at what has no translation.
mlir::FailureOr<StreamingResults>
buildStreamingAttention(mlir::OpBuilder &b, StreamedAttention op,
                        const mlir::IRMapping &scalars, TensorReads &tensors,
                        const halide::Target &target, attn::Form form,
                        const MaskBounds *bounds, MaskTiling &tiling);

/// The first keys (i32) of all segments of the keys of \p op, of \p keys, but
/// the first: parts that a kernel joins are read where they lie. Empty where it
/// joins none.
llvm::SmallVector<Extent> segmentCuts(mlir::OpBuilder &b,
                                      attn::OnlineAttentionOp op,
                                      const mlir::IRMapping &scalars,
                                      Extent keys);

/// Writes at \p b, inside a pipeline, one number (i32): 1 if the scores of \p
/// op, whose plan has a bounded form, are small enough for that, else 0. NaN
/// and infinity are not. The pipeline's output, with its schedule.
llvm::LogicalResult writeScoreBound(mlir::OpBuilder &b, StreamedAttention op,
                                    const mlir::IRMapping &scalars,
                                    TensorReads &tensors,
                                    const halide::Target &target);

} // namespace heed

#endif
