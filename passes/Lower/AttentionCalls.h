//===- AttentionCalls.h - which form of an attention is called --*- C++ -*-===//
// Calls of an attention whose pipelines are several (AttentionForms.h): a
// branch between them; or, where queries know nothing of each other, each form
// for the queries that it is the fastest for.
#ifndef HEED_PASSES_LOWER_ATTENTIONCALLS_H
#define HEED_PASSES_LOWER_ATTENTIONCALLS_H

#include "dialects/Halide/HalideDialect.h"
#include "passes/Kernels/StreamedAttention.h"
#include "passes/Lower/AttentionForms.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace heed {

/// Lets \p call happen only if \p condition does not hold, else a call of
/// pipeline \p name, which is returned.
halide::CallOp branch(halide::CallOp call, mlir::Value condition,
                      llvm::StringRef name);

/// The attention of \p kernel, if that is all that its pipeline computes in a
/// schedule of its own: then there may be a pipeline of each form.
StreamedAttention aloneIn(mlir::func::FuncOp kernel);

/// Calls of a form's pipeline: none if no call has a use for it; \p always if
/// all calls have, whatever their sizes.
struct FormCalls {
  llvm::SmallVector<halide::CallOp> calls;
  bool always = false;
};

/// Lets \p calls happen only where form \p number is not the fastest, and calls
/// of pipeline \p name where it is, which are returned.
mlir::FailureOr<FormCalls> branchOn(llvm::ArrayRef<halide::CallOp> calls,
                                    attn::AttentionLike op,
                                    const halide::Target &target,
                                    llvm::ArrayRef<AttentionForm> forms,
                                    size_t number, llvm::StringRef name);

/// Gives those of \p calls of \p op that may have enough queries and keys a
/// branch that calls pipeline \p bounded where pipeline \p bound finds that the
/// scores are. Returns the calls in these branches.
mlir::FailureOr<llvm::SmallVector<halide::CallOp>>
branchOnBound(llvm::ArrayRef<halide::CallOp> calls, attn::AttentionLike op,
              llvm::StringRef bound, llvm::StringRef bounded);

/// Whether what the bound of \p op's scores is found from are inputs of \p
/// kernel: nothing is computed twice for it.
bool boundReadsInputs(mlir::func::FuncOp kernel, StreamedAttention op);

/// How groups of \p op share keys where \p call happens; nothing if they do
/// not. Fails with an error where callers do not know.
mlir::FailureOr<std::optional<KeyGroups>> groupsAt(halide::CallOp call,
                                                   attn::AttentionLike op);

/// In how many parts the keys of \p op are cut where \p call happens. Fails
/// with an error where callers do not know.
mlir::FailureOr<mlir::Value> partsAt(halide::CallOp call,
                                     attn::AttentionLike op,
                                     const halide::Target &target);

/// Where queries are to be found in a kernel's arguments and results.
struct QueryAxes {
  llvm::SmallVector<std::pair<unsigned, int64_t>> arguments;
  llvm::SmallVector<int64_t> results;
};

/// Where they are, if a call for some of the queries of \p op, which is alone
/// in \p kernel, is one with those parts of the arguments and results: nothing
/// depends on a query's number, and how many there are is not known.
std::optional<QueryAxes> separableQueries(mlir::func::FuncOp kernel,
                                          StreamedAttention op);

/// Replaces \p calls of \p kernel by calls of pipelines \p names, one of each
/// of \p forms, for the queries that the form is to compute; they are returned
/// by form. How many queries there are becomes an argument of its own.
mlir::FailureOr<llvm::SmallVector<llvm::SmallVector<halide::CallOp>>>
callInParts(mlir::func::FuncOp kernel, attn::AttentionLike op,
            const QueryAxes &axes, llvm::ArrayRef<halide::CallOp> calls,
            const halide::Target &target, llvm::ArrayRef<AttentionForm> forms,
            llvm::ArrayRef<std::string> names);

} // namespace heed

#endif
