//===- KernelCalls.h - what calls of a kernel pass to its pipeline *- C++ -*-=//
#ifndef HEED_PASSES_LOWER_KERNELCALLS_H
#define HEED_PASSES_LOWER_KERNELCALLS_H

#include "passes/Lower/MaskTiling.h"
#include "passes/Schedule/KernelInfo.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace heed {

/// Replaces a call of a kernel by one of its pipeline, with destinations whose
/// extents the caller computes.
mlir::FailureOr<halide::CallOp> rewriteCall(mlir::func::CallOp call,
                                            mlir::func::FuncOp kernel);

/// Sizes in \p kernel that may be 0, where no tile has a place for the state
/// of an attention, but its log-sum-exp is a result: those of value dims.
llvm::SmallVector<mlir::Value> neededByLse(mlir::func::FuncOp kernel);

/// Lets \p calls of a kernel happen only where none of its \p sizes is 0, else
/// calls of pipeline \p name.
mlir::LogicalResult branchWhereEmpty(llvm::ArrayRef<halide::CallOp> calls,
                                     llvm::ArrayRef<mlir::Value> sizes,
                                     llvm::StringRef name);

/// Gives those of \p calls that may have 1 to \p most rows, their argument \p
/// rows, a branch that calls pipeline \p name for them. Returns the calls in
/// these branches.
llvm::SmallVector<halide::CallOp>
branchAtRows(llvm::ArrayRef<halide::CallOp> calls, unsigned rows, int64_t most,
             llvm::StringRef name);

/// Calls pipeline \p name before \p call and hands its results, the tables of
/// \p request's mask, to \p call.
mlir::LogicalResult callMaskTables(halide::CallOp call,
                                   const MaskRequest &request,
                                   llvm::StringRef name);

/// Whether \p tensor of the host is part of another one, or will be written as
/// such a part: its rows need not lie side by side. What a loop carries does
/// (`attn-form-entries`).
bool mayLieApart(mlir::Value tensor);

/// Takes back that the rows of a buffer of \p kernel lie side by side where one
/// of \p calls passes a slice there, or writes its result into one. \p inputs:
/// what the calls pass.
void allowSlices(KernelInfo &kernel, llvm::ArrayRef<halide::CallOp> calls,
                 llvm::ArrayRef<llvm::StringRef> inputs);

/// Lets \p call pass what \p kernel reads now that it is scheduled: \p inputs
/// names its inputs before. What a schedule wants packed is computed right
/// before, and passed by name.
halide::CallOp packInputs(halide::CallOp call, KernelInfo &kernel,
                          llvm::ArrayRef<llvm::StringRef> inputs,
                          llvm::ArrayRef<mlir::StringAttr> packers);

/// Has the stores of weights of streaming attentions traced: each of their
/// elements is a pair. A row block may compute a weight more than once.
void tracePairs(halide::PipelineOp pipeline);

} // namespace heed

#endif
