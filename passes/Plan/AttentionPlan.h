//===- AttentionPlan.h - how an attention is computed -----------*- C++ -*-===//
// What attn-choose-algorithm writes as `attn.plan` (docs/ir.md): which
// pipelines an attention has, and their tiles.
#ifndef HEED_PASSES_PLAN_ATTENTIONPLAN_H
#define HEED_PASSES_PLAN_ATTENTIONPLAN_H

#include "dialects/Attn/Dialect.h"
#include "dialects/Halide/Target.h"

namespace heed {

/// Why \p op cannot stream, or an empty string if it can: in one pass over its
/// keys, or, where it needsSumFirst(), in two.
llvm::StringRef whyNotStreaming(attn::AttentionOp op);
/// The same on \p target, a GPU.
llvm::StringRef whyNotStreamingOnGPU(attn::AttentionOp op,
                                     const halide::Target &target);
/// The same, however many dims of each kind it has: attn-join-dims may make one
/// of them.
llvm::StringRef whyNeverStreaming(attn::AttentionOp op);

/// Whether a tile needs tables of its mask, or looks at all keys.
bool needsTables(attn::AttentionLike op);
/// Whether \p where says what it does by sums and comparisons of places alone.
bool comparesOnly(mlir::Region &where);
/// How many queries a thread of a GPU has.
int64_t queriesOfThread(attn::AttentionLike op, const halide::Target &target);
/// Whether it then has more registers than fit a full multiprocessor.
bool needsMoreRegisters(attn::AttentionLike op, const halide::Target &target);
/// How many keys it has of a block of \p keys, where a block of threads has
/// \p queries.
int64_t keysOfThread(attn::AttentionLike op, const halide::Target &target,
                     int64_t queries, int64_t keys);
/// The same of one query, where parts of the keys have tiles of their own.
constexpr int64_t keysOfSplitThread = 2;

/// Keys, or value dims, of a register tile.
int64_t registerGroup(const halide::Target &target);
/// Vectors of queries in a register tile, which a tile is as wide as.
int64_t tileVectors(const halide::Target &target);

/// The plan of \p op, which can stream. Its mask is solved before, if at all.
attn::PlanAttr streamingPlan(attn::AttentionLike op,
                             const halide::Target &target);
/// The same on a GPU.
attn::PlanAttr planOnGPU(attn::AttentionLike op, const halide::Target &target);

/// Fails with an error where the plan of \p op, which a person may have edited,
/// has tiles that the schedule cannot cut: it would compute wrong numbers.
llvm::LogicalResult verifyTiles(attn::AttentionLike op,
                                const halide::Target &target);

} // namespace heed

#endif
