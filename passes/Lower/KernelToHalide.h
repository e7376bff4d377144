//===- KernelToHalide.h - the algorithm of one kernel as a ------*- C++ -*-===//
// Halide pipeline
#ifndef HEED_PASSES_LOWER_KERNELTOHALIDE_H
#define HEED_PASSES_LOWER_KERNELTOHALIDE_H

#include "dialects/Attn/Dialect.h"
#include "dialects/Halide/Target.h"
#include "passes/Kernels/StreamedAttention.h"
#include "passes/Lower/MaskTiling.h"
#include "passes/Schedule/KernelInfo.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/BitVector.h"

namespace heed {

/// A kernel's pipeline, as schedules see it, and the tables of masks that are
/// inputs behind the kernel's, in this order.
struct TranslatedKernel {
  KernelInfo info;
  llvm::SmallVector<MaskRequest, 1> masks;
};

/// Builds at \p b pipeline \p name of \p kernel: what is computed, without any
/// schedule but that of an attention in \p form. \p weights says which
/// arguments are the same in every call. Fails with an error at an op that has
/// no translation; then nothing is left behind.
mlir::FailureOr<TranslatedKernel>
translateKernel(mlir::OpBuilder &b, mlir::func::FuncOp kernel,
                llvm::StringRef name, const halide::Target &target,
                attn::Form form, const llvm::BitVector &weights);

/// Builds at \p b pipeline \p name with the inputs of \p kernel, which computes
/// the tables of \p request's mask, and its schedule.
mlir::LogicalResult translateMaskTables(mlir::OpBuilder &b,
                                        mlir::func::FuncOp kernel,
                                        const MaskRequest &request,
                                        llvm::StringRef name,
                                        const halide::Target &target);

/// Builds at \p b pipeline \p name with the inputs of \p kernel, which finds
/// out whether the scores of \p op are bounded (writeScoreBound).
mlir::LogicalResult translateScoreBound(mlir::OpBuilder &b,
                                        mlir::func::FuncOp kernel,
                                        StreamedAttention op,
                                        llvm::StringRef name,
                                        const halide::Target &target);

} // namespace heed

#endif
