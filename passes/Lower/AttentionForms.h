//===- AttentionForms.h - pipelines of one attention ------------*- C++ -*-===//
// A streaming attention has a pipeline of each form that may be the fastest
// for some number of queries; the host chooses when it runs.
#ifndef HEED_PASSES_LOWER_ATTENTIONFORMS_H
#define HEED_PASSES_LOWER_ATTENTIONFORMS_H

#include "dialects/Attn/Dialect.h"
#include "dialects/Halide/Target.h"
#include "passes/Lower/StreamingAttention.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace heed {

/// Replaces attention ops of \p kernel that do not stream by their definition.
/// What family schedules it then, is decided as for any other kernel.
llvm::LogicalResult decomposeAttention(mlir::func::FuncOp kernel,
                                       const halide::Target &target);

/// A form, and what its pipeline's name ends in.
struct AttentionForm {
  attn::Form form;
  std::string suffix;
};

/// Forms of the plan of \p op, the one for many queries last; what the bounded
/// one computes is a part of that.
llvm::SmallVector<AttentionForm> formsOf(attn::AttentionLike op);

/// Whether form \p number of \p forms, but for those before it, is the fastest
/// one of \p op for \p queries x \p keys (index): an i1, a constant where the
/// sizes are. \p members of a group share their keys, if given. \p reach tells
/// how many keys a tile of so many queries looks at, in pieces of so many; null
/// where that is not known.
mlir::Value isFastest(mlir::OpBuilder &b, mlir::Location loc,
                      attn::AttentionLike op, const halide::Target &target,
                      llvm::ArrayRef<AttentionForm> forms, size_t number,
                      mlir::Value queries, mlir::Value keys,
                      mlir::Value members,
                      llvm::function_ref<mlir::Value(int64_t, int64_t)> reach);

/// How many of \p queries each of \p forms computes the fastest (index), if a
/// call may have some of the queries; the form for many has the first ones.
llvm::SmallVector<mlir::Value>
shareQueries(mlir::OpBuilder &b, mlir::Location loc,
             const halide::Target &target, llvm::ArrayRef<AttentionForm> forms,
             mlir::Value queries, mlir::Value members);

/// What a pipeline of rows wants to know of shared keys (index): members of a
/// group, and groups that share their keys.
struct KeyGroups {
  mlir::Value members, neighbours;
};

/// Of \p op, if keys are shared. \p number finds a size or a symbol of the op.
std::optional<KeyGroups>
groupsOf(mlir::OpBuilder &b, mlir::Location loc, attn::AttentionLike op,
         llvm::function_ref<mlir::Value(mlir::Value)> number);

/// How many parts the keys of \p op, which has a split form, are cut in
/// (index): enough for a few blocks of threads a multiprocessor, of two blocks
/// of keys at least. \p number finds a size of the op.
mlir::Value partsOf(mlir::OpBuilder &b, mlir::Location loc,
                    attn::AttentionLike op, const halide::Target &target,
                    llvm::function_ref<mlir::Value(mlir::Value)> number);

} // namespace heed

#endif
