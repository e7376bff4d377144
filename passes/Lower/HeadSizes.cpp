//===- HeadSizes.cpp - attention of heads whose size a call knows ---------===//
//
// On a GPU a tile of attention is made for one size of the heads: keys and
// values of a block lie in shared memory, sums in registers. Where a model
// leaves the size open there is a pipeline for each usual one, and one for all
// others, which stores the scores.
#include "passes/Lower/HeadSizes.h"
#include "passes/Kernels/StreamedAttention.h"
#include "passes/Lower/AttentionCalls.h"
#include "passes/Lower/CallerExtents.h"
#include "passes/Plan/AttentionPlan.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace heed;
using attn::DimKind;

/// Sizes of heads that there is a pipeline for, where a model does not say
/// them.
static constexpr int64_t kHeadSizes[] = {64, 128};

/// The only attention of \p kernel, or null.
static attn::AttentionOp onlyAttention(func::FuncOp kernel) {
  SmallVector<attn::AttentionOp> ops;
  kernel.walk([&](attn::AttentionOp op) { ops.push_back(op); });
  return ops.size() == 1 ? ops[0] : attn::AttentionOp();
}

/// The sizes of what the terms of \p op contract, and of its values, that are
/// not known.
static SmallVector<Value> unknownSizes(attn::AttentionOp op) {
  llvm::SmallSetVector<Value, 2> sizes;
  for (Value size : op.getSizes().drop_front(op.firstDim(DimKind::Contract)))
    if (!getConstantIntValue(size))
      sizes.insert(size);
  return sizes.takeVector();
}

/// Gives \p value the extents that the sizes of \p op, which reads or writes it
/// by \p map, are constants for.
static void refine(Value value, AffineMap map, attn::AttentionOp op) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  for (auto [extent, expr] : llvm::zip(shape, map.getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(expr);
        dim && dim.getPosition() >= op.firstDim(DimKind::Contract))
      if (auto size = getConstantIntValue(op.getSizes()[dim.getPosition()]))
        extent = *size;
  value.setType(type.clone(shape));
}

/// The same of all that \p op takes from outside of its kernel, and its result.
static void refineTypes(func::FuncOp kernel, attn::AttentionOp op) {
  auto inputs = [&](ValueRange values, ArrayAttr maps) {
    for (auto [value, map] :
         llvm::zip(values, maps.getAsValueRange<AffineMapAttr>()))
      if (isa<BlockArgument>(value))
        refine(value, map, op);
  };
  inputs(op.getTermOperands(), op.getTermMaps());
  inputs(op.getValues(), op.getValueMaps());
  refine(op.getOutput(), op.outputMap(), op);
}

/// A copy of \p kernel beside it for calls where all of unknownSizes are \p
/// size: its attention streams. Null where it cannot.
static func::FuncOp withHeadSize(func::FuncOp kernel, int64_t size,
                                 const halide::Target &target) {
  auto own = cast<func::FuncOp>(OpBuilder(kernel).clone(*kernel));
  Block &body = own.getBody().front();
  OpBuilder b = OpBuilder::atBlockBegin(&body);
  attn::AttentionOp op = onlyAttention(own);
  Value known = arith::ConstantIndexOp::create(b, own.getLoc(), size);
  for (Value unknown : unknownSizes(op))
    unknown.replaceAllUsesWith(known);
  if (!whyNotStreamingOnGPU(op, target).empty()) {
    own.erase();
    return {};
  }
  refineTypes(own, op);
  op->setAttr(attn::kPlanAttr, streamingPlan(op, target));
  b.setInsertionPoint(op);
  StreamedAttention streamed = stream(b, op);
  op.getOutput().replaceAllUsesWith(streamed.finish.getOutput());
  op.erase();
  own.setFunctionType(
      FunctionType::get(own.getContext(), body.getArgumentTypes(),
                        TypeRange(body.getTerminator()->getOperandTypes())));
  if (aloneIn(own))
    return own;
  own.erase();
  return {};
}

/// Lets \p calls happen only where one of \p sizes of their kernel is not \p
/// value, else calls of pipeline \p name, which are returned.
static FailureOr<SmallVector<halide::CallOp>>
branchOnSize(ArrayRef<halide::CallOp> calls, ArrayRef<Value> sizes,
             int64_t value, StringRef name) {
  SmallVector<CallerExtent> extents;
  for (Value size : sizes) {
    FailureOr<CallerExtent> extent = callerSize(size);
    if (failed(extent))
      return failure();
    extents.push_back(*extent);
  }
  SmallVector<halide::CallOp> chosen;
  for (halide::CallOp call : calls) {
    OpBuilder b(call);
    Location loc = call.getLoc();
    Value wanted = arith::ConstantIndexOp::create(b, loc, value), all;
    for (const CallerExtent &extent : extents) {
      Value size = getValueOrCreateConstantIndexOp(
          b, loc, extentAt(b, loc, call.getInputs(), extent));
      Value same =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, size, wanted);
      all = all ? b.createOrFold<arith::AndIOp>(loc, all, same) : same;
    }
    chosen.push_back(branch(call, all, name));
  }
  return chosen;
}

FailureOr<SmallVector<SizedKernel>>
heed::streamBySize(func::FuncOp kernel, ArrayRef<halide::CallOp> calls,
                   const halide::Target &target) {
  SmallVector<SizedKernel> result;
  attn::AttentionOp op = onlyAttention(kernel);
  SmallVector<Value> unknown = op ? unknownSizes(op) : SmallVector<Value>();
  if (unknown.empty())
    return result;
  SymbolTable symbols(kernel->getParentOp());
  for (int64_t size : kHeadSizes) {
    func::FuncOp own = withHeadSize(kernel, size, target);
    if (!own)
      return result;
    // A name that no other kernel has, nor any form of one.
    own.setSymName(format("{}_{}", kernel.getSymName(), size));
    symbols.insert(own);
    auto chosen = branchOnSize(calls, unknown, size, own.getSymName());
    if (failed(chosen))
      return failure();
    result.push_back({own, *chosen});
  }
  return result;
}
