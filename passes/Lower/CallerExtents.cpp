//===- CallerExtents.cpp - extents of a kernel at its calls ---------------===//
#include "passes/Lower/CallerExtents.h"
#include "dialects/Attn/SymbolicDims.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;

FailureOr<CallerExtent> heed::callerSize(Value value) {
  CallerExtent extent;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    extent.fixed = constant.getSExtValue();
    return extent;
  }
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    extent.argument = arg.getArgNumber();
    return extent;
  }
  if (auto dim = value.getDefiningOp<tensor::DimOp>())
    if (std::optional<int64_t> axis = dim.getConstantIndex())
      return callerExtent(dim.getSource(), *axis);
  return emitError(value.getLoc(),
                   "a result's extent is computed inside its kernel");
}

FailureOr<CallerExtent> heed::callerExtent(Value value, int64_t axis) {
  attn::ExtentSource source = attn::traceExtent(value, axis);
  CallerExtent extent;
  if (source.fixed) {
    extent.fixed = *source.fixed;
    return extent;
  }
  if (source.size)
    return callerSize(source.size);
  if (auto arg = dyn_cast<BlockArgument>(source.tensor)) {
    extent.argument = arg.getArgNumber();
    extent.axis = source.axis;
    return extent;
  }
  return emitError(source.tensor.getLoc(),
                   "the extents of its result are not known to callers");
}

OpFoldResult heed::extentAt(OpBuilder &b, Location loc, ValueRange inputs,
                            const CallerExtent &extent) {
  if (extent.fixed)
    return b.getIndexAttr(*extent.fixed);
  Value input = inputs[extent.argument];
  if (extent.axis)
    return tensor::DimOp::create(b, loc, input, *extent.axis).getResult();
  return input;
}
