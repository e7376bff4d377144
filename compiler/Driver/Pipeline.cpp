//===- Pipeline.cpp - the order of the passes -----------------------------===//
//
// Every pass between the front end and LLVM, in one place and in the order of
// the design.
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/Pipeline.h"
#include "compiler/Reference/Pipeline.h"
#include "dialects/Attn/Dialect.h"
#include "dialects/Halide/HalideDialect.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/Transforms/BufferDeallocationOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/Transforms/BufferViewFlowOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/ControlFlow/Transforms/BufferDeallocationOpInterfaceImpl.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/AllocationOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/Transforms/BufferViewFlowOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/Transforms/BufferDeallocationOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/IR/TensorInferTypeOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"

using namespace mlir;

void heed::registerPipelineDialects(DialectRegistry &registry) {
  registry
      .insert<attn::AttnDialect, halide::HalideDialect, affine::AffineDialect,
              arith::ArithDialect, bufferization::BufferizationDialect,
              cf::ControlFlowDialect, func::FuncDialect, index::IndexDialect,
              LLVM::LLVMDialect, linalg::LinalgDialect, math::MathDialect,
              memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect>();
  attn::registerBufferization(registry);
  halide::registerBufferization(registry);
  arith::registerBufferDeallocationOpInterfaceExternalModels(registry);
  arith::registerBufferViewFlowOpInterfaceExternalModels(registry);
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  arith::registerValueBoundsOpInterfaceExternalModels(registry);
  bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(
      registry);
  cf::registerBufferDeallocationOpInterfaceExternalModels(registry);
  func::registerInlinerExtension(registry);
  linalg::registerBufferizableOpInterfaceExternalModels(registry);
  memref::registerAllocationOpInterfaceExternalModels(registry);
  memref::registerBufferViewFlowOpInterfaceExternalModels(registry);
  scf::registerBufferDeallocationOpInterfaceExternalModels(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  scf::registerValueBoundsOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerInferTypeOpInterfaceExternalModels(registry);
}

void heed::buildAttentionPipeline(OpPassManager &passes, bool split) {
  passes.addPass(createAttnVerifyFrontEnd());
  passes.addNestedPass<func::FuncOp>(createAttnSplitScans());
  passes.addNestedPass<func::FuncOp>(createAttnBatchSteps());
  passes.addNestedPass<func::FuncOp>(createAttnRaiseLinearAttention());
  passes.addNestedPass<func::FuncOp>(createAttnWidenSums());
  passes.addNestedPass<func::FuncOp>(createAttnChunkLinearAttention());
  passes.addNestedPass<func::FuncOp>(createAttnFuseScans());
  passes.addNestedPass<func::FuncOp>(createAttnBlockScans());
  passes.addNestedPass<func::FuncOp>(createAttnLowerScans());
  passes.addNestedPass<func::FuncOp>(createAttnFuseElementwise());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addNestedPass<func::FuncOp>(createAttnContractTables());
  passes.addNestedPass<func::FuncOp>(createAttnRaiseAttention());
  passes.addNestedPass<func::FuncOp>(createAttnReorderProducts());
  passes.addNestedPass<func::FuncOp>(createAttnJoinDims());
  if (split)
    passes.addNestedPass<func::FuncOp>(createAttnSplitMasks());
  passes.addNestedPass<func::FuncOp>(createAttnSolveMasks());
  passes.addNestedPass<func::FuncOp>(createAttnChooseAlgorithm());
  passes.addPass(createAttnVerifyAttention());
}

void heed::buildKernelPipeline(OpPassManager &passes, bool fastMath) {
  buildAttentionPipeline(passes);
  // Before kernels are formed, that none computes anew what stays the same.
  passes.addNestedPass<func::FuncOp>(createAttnHoistInvariants());
  passes.addPass(createAttnHoistWeights());
  passes.addPass(createAttnFormKernels());
  if (fastMath)
    passes.addPass(createAttnRelaxMath());
  passes.addPass(createCSEPass());
  passes.addPass(createAttnMergeProducts());
  passes.addPass(createAttnMergeSteps());
  passes.addPass(createAttnMergeElementwise());
  passes.addPass(createCSEPass());
  passes.addNestedPass<func::FuncOp>(createAttnStreamAttention());
  passes.addPass(createAttnVerifyKernels());
  passes.addPass(createAttnToHalide());
  passes.addPass(createAttnVerifyHalide());
  passes.addPass(createCSEPass());
  // The host's first pass: people read and edit a host whose weights are packed
  // once.
  passes.addPass(createAttnHoistPacks());
}

void heed::buildCodegenPipeline(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addNestedPass<halide::PipelineOp>(createHalideExpandMath());
  passes.addPass(createCSEPass());
}

void heed::buildHostPipeline(OpPassManager &passes, const std::string &prefix,
                             bool planMemory) {
  passes.addPass(createAttnFormEntries());
  passes.addPass(bufferization::createEmptyTensorEliminationPass());
  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.bufferizeFunctionBoundaries = true;
  // What a layer loop carries may be another buffer in every iteration.
  bufferize.allowReturnAllocsFromLoops = true;
  bufferize.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  passes.addPass(bufferization::createOneShotBufferizePass(bufferize));
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  if (planMemory)
    passes.addNestedPass<func::FuncOp>(createAttnPlanMemory());
  bufferization::buildBufferDeallocationPipeline(passes);
  AttnLowerHostOptions lower;
  lower.prefix = prefix;
  passes.addPass(createAttnVerifyHost());
  passes.addPass(createAttnLowerHost(lower));
}

void heed::buildLLVMPipeline(OpPassManager &passes) {
  passes.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  passes.addPass(memref::createExpandStridedMetadataPass());
  passes.addPass(createLowerAffinePass());
  passes.addPass(createLoopInvariantCodeMotionPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createSCFToControlFlowPass());
  // To bf16 by integers: not every libgcc has that conversion.
  arith::ArithExpandOpsPassOptions bf16;
  bf16.includeBf16 = true;
  passes.addPass(arith::createArithExpandOpsPass(bf16));
  // libm has no reciprocal square root; where it has a function (log1p, expm1)
  // that is more exact than LLVM's expansion.
  math::MathExpandOpsPassOptions expand;
  expand.opMnemonics = {"rsqrt"};
  passes.addPass(math::createMathExpandOpsPass(expand));
  passes.addPass(createConvertMathToLibmPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createFinalizeMemRefToLLVMConversionPass());
  passes.addPass(createConvertIndexToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
}

void heed::registerPipelines() {
  static PassPipelineRegistration<> kernels(
      "heed-kernels", "attn IR to kernels in the halide dialect",
      [](OpPassManager &passes) { buildKernelPipeline(passes, false); });
  static PassPipelineRegistration<> codegen(
      "heed-codegen", "pipelines to what libHalide is given",
      buildCodegenPipeline);
  static PassPipelineRegistration<> host(
      "heed-host", "a host on tensors to calls of the runtime",
      [](OpPassManager &passes) { buildHostPipeline(passes, "heed"); });
  static PassPipelineRegistration<> llvm(
      "heed-llvm", "a host on memrefs to LLVM", buildLLVMPipeline);
}
