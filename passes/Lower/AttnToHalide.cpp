//===- AttnToHalide.cpp - kernels become scheduled Halide pipelines
//-------------------------===//
#include "dialects/Attn/Dialect.h"
#include "passes/Lower/Cost.h"
#include "passes/Lower/KernelToHalide.h"
#include "passes/MaskBounds.h"
#include "passes/Passes.h"
#include "passes/Remarks.h"
#include "passes/Schedule/MaskTables.h"
#include "passes/Schedule/Rewrite.h"
#include "passes/Schedule/Schedule.h"
#include "passes/Schedule/StreamingAttention.h"
#include "passes/Weights.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace heed {
#define GEN_PASS_DEF_ATTNTOHALIDE
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

/// An extent as the caller of a kernel with arguments \p inputs sees it.
OpFoldResult extentAt(OpBuilder &b, Location loc, ValueRange inputs,
                      const CallerExtent &extent) {
  if (extent.fixed)
    return b.getIndexAttr(*extent.fixed);
  Value input = inputs[extent.argument];
  if (extent.axis)
    return tensor::DimOp::create(b, loc, input, *extent.axis).getResult();
  return input;
}

/// Replaces a call of a kernel by one of its pipeline, with destinations whose
/// extents the caller computes.
FailureOr<halide::CallOp> rewriteCall(func::CallOp call, func::FuncOp kernel) {
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
      sizes.push_back(getValueOrCreateConstantIndexOp(
          b, loc, extentAt(b, loc, call.getOperands(), *extent)));
    }
    outs.push_back(tensor::EmptyOp::create(b, loc, type.getShape(),
                                           type.getElementType(), sizes));
  }
  auto halideCall =
      halide::CallOp::create(b, loc, call.getResultTypes(), call.getCallee(),
                             call.getOperands(), outs);
  call.replaceAllUsesWith(halideCall.getResults());
  call.erase();
  return halideCall;
}

/// Calls pipeline \p name before \p call and hands its results, the tables of
/// \p request's mask, to \p call.
LogicalResult callMaskTables(halide::CallOp call, const MaskRequest &request,
                             StringRef name) {
  OpBuilder b(call);
  Location loc = call.getLoc();
  attn::AttentionOp op = request.op;
  FailureOr<MaskBounds> bounds = solveMask(op);
  if (failed(bounds))
    return failure();
  SmallVector<Value> outs;
  SmallVector<Type> types;
  for (const MaskArray &array : maskArrays(op, *bounds, request.tiling)) {
    SmallVector<OpFoldResult> sizes;
    for (MaskArray::Axis axis : array.axes) {
      if (!axis.dim) {
        sizes.push_back(b.getIndexAttr(axis.size));
        continue;
      }
      FailureOr<CallerExtent> extent = callerSize(op.getSizes()[*axis.dim]);
      if (failed(extent))
        return failure();
      OpFoldResult size = extentAt(b, loc, call.getInputs(), *extent);
      if (axis.size > 1) {
        if (extent->fixed) {
          size = b.getIndexAttr(llvm::divideCeil(*extent->fixed, axis.size));
        } else {
          auto number = [&](int64_t value) -> Value {
            return arith::ConstantIndexOp::create(b, loc, value);
          };
          Value up = arith::AddIOp::create(b, loc, cast<Value>(size),
                                           number(axis.size - 1));
          size =
              arith::DivUIOp::create(b, loc, up, number(axis.size)).getResult();
        }
      }
      sizes.push_back(size);
    }
    outs.push_back(tensor::EmptyOp::create(b, loc, sizes, array.element));
    types.push_back(outs.back().getType());
  }
  auto tables =
      halide::CallOp::create(b, loc, types, name, call.getInputs(), outs);
  call.getInputsMutable().append(tables.getResults());
  return success();
}

/// Pipelines that pack weights: equal ones are one. Their text decides, without
/// the name.
class Packings {
public:
  halide::PipelineOp unique(halide::PipelineOp pipeline, SymbolTable &symbols) {
    StringAttr name = pipeline.getSymNameAttr();
    pipeline.setSymName("pack");
    std::string text;
    llvm::raw_string_ostream os(text);
    pipeline.print(os, OpPrintingFlags().useLocalScope());
    pipeline.setSymName(name);
    auto [found, isNew] = known.try_emplace(text, pipeline);
    if (isNew)
      symbols.insert(pipeline);
    else
      pipeline.erase();
    return found->second;
  }

private:
  llvm::StringMap<halide::PipelineOp> known;
};

/// Lets \p call pass what \p kernel reads now that it is scheduled: \p inputs
/// names its inputs before, one per operand. What a schedule wants packed is
/// computed right before.
halide::CallOp packInputs(halide::CallOp call, KernelInfo &kernel,
                          ArrayRef<Operation *> inputs,
                          ArrayRef<StringAttr> packers) {
  OpBuilder b(call);
  Location loc = call.getLoc();
  DenseMap<Operation *, Value> operands;
  for (auto [input, operand] : llvm::zip_equal(inputs, call.getInputs()))
    operands[input] = operand;
  SmallVector<Value> packed;
  for (auto [packing, packer] : llvm::zip_equal(kernel.packings, packers)) {
    Value out = tensor::EmptyOp::create(b, loc, packing.sizes, packing.element);
    SmallVector<Value> sources;
    for (unsigned input : packing.inputs)
      sources.push_back(operands.lookup(inputs[input]));
    packed.push_back(halide::CallOp::create(b, loc, out.getType(),
                                            packer.getValue(), sources, out)
                         .getResult(0));
  }
  SmallVector<Value> now;
  auto next = packed.begin();
  for (Operation *input : kernel.pipeline.getInputs())
    now.push_back(operands.contains(input) ? operands[input] : *next++);
  auto fresh = halide::CallOp::create(b, loc, call.getResultTypes(),
                                      call.getCallee(), now, call.getOuts());
  call.replaceAllUsesWith(fresh.getResults());
  call.erase();
  return fresh;
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
    SymbolTable symbols(module);
    WeightAnalysis analysis;
    Packings packings;
    SmallVector<func::CallOp> calls;
    module.walk([&](func::CallOp call) { calls.push_back(call); });
    // Arguments that hold weights in every call of a kernel.
    DenseMap<Operation *, llvm::BitVector> weights;
    for (func::CallOp call : calls) {
      auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!kernel || !kernel->hasAttr(attn::kKernelAttr))
        continue;
      llvm::BitVector &all =
          weights.try_emplace(kernel, kernel.getNumArguments(), true)
              .first->second;
      for (auto [k, operand] : llvm::enumerate(call.getOperands())) {
        const Dependence &on = analysis.of(operand);
        if (!on.fixed || !on.weights)
          all.reset(k);
      }
    }
    llvm::MapVector<Operation *, SmallVector<halide::CallOp>> callers;
    for (func::CallOp call : calls) {
      auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!kernel || !kernel->hasAttr(attn::kKernelAttr))
        continue;
      FailureOr<halide::CallOp> rewritten = rewriteCall(call, kernel);
      if (failed(rewritten))
        return signalPassFailure();
      callers[kernel].push_back(*rewritten);
    }
    for (auto kernel :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!kernel->hasAttr(attn::kKernelAttr))
        continue;
      OpBuilder b(kernel);
      llvm::BitVector fixed = weights.lookup(kernel);
      fixed.resize(kernel.getNumArguments());
      FailureOr<KernelInfo> info = failure();
      if (succeeded(decomposeAttention(kernel)))
        info = translateKernel(b, kernel, target, fixed);
      if (failed(info))
        return signalPassFailure();
      for (const MaskRequest &request : info->masks) {
        std::string name = (kernel.getName() + "_mask").str();
        for (unsigned k = 0; module.lookupSymbol(name); ++k)
          name = (kernel.getName() + "_mask_" + Twine(k)).str();
        if (failed(translateMaskTables(b, kernel, request, name, target)))
          return signalPassFailure();
        for (halide::CallOp call : callers[kernel])
          if (failed(callMaskTables(call, request, name)))
            return signalPassFailure();
        remarkFound(request.op, "attn-to-halide", "mask",
                    name + " computes what the mask of " + kernel.getName() +
                        " needs to know of its tiles and blocks");
      }
      SmallVector<Operation *> inputs = info->pipeline.getInputs();
      writeCost(kernel, info->pipeline);
      StringRef family = info->family;
      if (family.empty())
        family = scheduleKernel(*info, target);
      else
        stateDenseStrides(*info);
      SmallVector<StringAttr> packers;
      for (Packing &packing : info->packings)
        packers.push_back(
            packings.unique(packing.pipeline, symbols).getSymNameAttr());
      for (halide::CallOp call : callers.lookup(kernel))
        packInputs(call, *info, inputs, packers);
      std::string how = (" has the " + family + " schedule").str();
      if (!packers.empty())
        how += " and reads weights packed by " + packers[0].str();
      remarkFound(kernel, "attn-to-halide", "schedule", kernel.getName() + how);
      kernel.erase();
    }
  }
};

} // namespace
