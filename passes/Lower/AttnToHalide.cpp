//===- AttnToHalide.cpp - kernels become scheduled Halide pipelines
//-------------------------===//
#include "dialects/Attn/Dialect.h"
#include "passes/Lower/KernelToHalide.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"
#include "passes/Schedule/StreamingAttention.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace heed {
#define GEN_PASS_DEF_ATTNTOHALIDE
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

/// Replaces a call of a kernel by one of its pipeline, with destinations whose
/// extents the caller computes.
LogicalResult rewriteCall(func::CallOp call, func::FuncOp kernel) {
  OpBuilder b(call);
  Location loc = call.getLoc();
  Operation *ret = kernel.getBody().front().getTerminator();
  SmallVector<Value> outs;
  for (Value result : ret->getOperands()) {
    auto type = cast<RankedTensorType>(result.getType());
    SmallVector<Value> sizes;
    for (int64_t axis = 0; axis < type.getRank(); ++axis) {
      if (!type.isDynamicDim(axis))
        continue;
      FailureOr<CallerExtent> extent = callerExtent(result, axis);
      if (failed(extent))
        return failure();
      if (extent->fixed)
        sizes.push_back(arith::ConstantIndexOp::create(b, loc, *extent->fixed));
      else if (extent->axis)
        sizes.push_back(tensor::DimOp::create(
            b, loc, call.getOperand(extent->argument), *extent->axis));
      else
        sizes.push_back(call.getOperand(extent->argument));
    }
    outs.push_back(tensor::EmptyOp::create(b, loc, type.getShape(),
                                           type.getElementType(), sizes));
  }
  auto halideCall =
      halide::CallOp::create(b, loc, call.getResultTypes(), call.getCallee(),
                             call.getOperands(), outs);
  call.replaceAllUsesWith(halideCall.getResults());
  call.erase();
  return success();
}

/// Replaces attention ops of \p kernel that do not stream by their definition.
/// What family schedules it then, is decided as for any other kernel.
LogicalResult decomposeAttention(func::FuncOp kernel) {
  SmallVector<attn::AttentionOp> ops;
  kernel.walk([&](attn::AttentionOp op) { ops.push_back(op); });
  IRRewriter rewriter(kernel.getContext());
  for (attn::AttentionOp op : ops) {
    auto chosen = op->getAttrOfType<StringAttr>("attn.algorithm");
    if (chosen ? chosen.getValue() == "streaming" : whyNotStreaming(op).empty())
      continue;
    rewriter.setInsertionPoint(op);
    auto definition =
        dyn_cast<linalg::AggregatedOpInterface>(op.getOperation());
    FailureOr<SmallVector<Value>> values = failure();
    if (definition)
      values = definition.decomposeOperation(rewriter);
    if (failed(values))
      return op.emitOpError("has no definition in upstream ops");
    if (chosen && chosen.getValue() == "row block")
      kernel->setAttr("attn.kind", chosen);
    rewriter.replaceOp(op, *values);
  }
  return success();
}

struct AttnToHalide : heed::impl::AttnToHalideBase<AttnToHalide> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    halide::Target target = halide::getTarget(module);
    SymbolTableCollection tables;
    SmallVector<func::CallOp> calls;
    module.walk([&](func::CallOp call) { calls.push_back(call); });
    for (func::CallOp call : calls) {
      auto kernel = dyn_cast_or_null<func::FuncOp>(
          tables.lookupNearestSymbolFrom(call, call.getCalleeAttr()));
      if (kernel && kernel->hasAttr(attn::kKernelAttr) &&
          failed(rewriteCall(call, kernel)))
        return signalPassFailure();
    }
    for (auto kernel :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!kernel->hasAttr(attn::kKernelAttr))
        continue;
      OpBuilder b(kernel);
      if (failed(decomposeAttention(kernel)))
        return signalPassFailure();
      FailureOr<KernelInfo> info = translateKernel(b, kernel, target);
      if (failed(info))
        return signalPassFailure();
      StringRef family = info->family;
      if (family.empty())
        family = scheduleKernel(*info, target);
      else
        stateDenseStrides(*info);
      remarkFound(kernel, "attn-to-halide", "schedule",
                  kernel.getName() + " has the " + family + " schedule");
      kernel.erase();
    }
  }
};

} // namespace
