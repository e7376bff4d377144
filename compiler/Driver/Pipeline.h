//===- Pipeline.h - the order of the passes ---------------------*- C++ -*-===//
//
// Every pass between the front end and LLVM, in one place and in the order of
// the design.
//
//===----------------------------------------------------------------------===//

#ifndef HEED_COMPILER_DRIVER_PIPELINE_H
#define HEED_COMPILER_DRIVER_PIPELINE_H

#include <string>

namespace mlir {
class DialectRegistry;
class OpPassManager;
} // namespace mlir

namespace heed {

/// Every dialect and interface that the pipelines need.
void registerPipelineDialects(mlir::DialectRegistry &registry);

/// attn IR to attentions with their masks solved and their plans: the first
/// part of the kernel pipeline. Without \p split, masks of remainders stay.
void buildAttentionPipeline(mlir::OpPassManager &passes, bool split = true);

/// attn IR to kernels in the halide dialect and a host on tensors. With
/// \p fastMath kernels may leave the error bounds.
void buildKernelPipeline(mlir::OpPassManager &passes, bool fastMath);

/// Pipelines of the halide dialect as libHalide is given them.
void buildCodegenPipeline(mlir::OpPassManager &passes);

/// A host on tensors to one on memrefs that calls the runtime; symbols begin
/// with \p prefix. Pipelines of the halide dialect are renamed and kept.
/// \p planMemory: one arena by attn-plan-memory, else an allocation each.
void buildHostPipeline(mlir::OpPassManager &passes, const std::string &prefix,
                       bool planMemory = true);

/// What is left to the LLVM dialect. The module holds no halide.pipeline.
void buildLLVMPipeline(mlir::OpPassManager &passes);

/// Names the pipelines for heed-opt: heed-kernels, heed-codegen,
/// heed-host, heed-llvm.
void registerPipelines();

} // namespace heed

#endif // HEED_COMPILER_DRIVER_PIPELINE_H
