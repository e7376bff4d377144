//===- Softmax.cpp - attn.softmax and attn.log_softmax: checks ------------===//
#include "dialects/Attn/Normaliser.h"
#include "dialects/Attn/Regions.h"
#include "support/Format.h"

using namespace mlir;
using namespace heed::attn;

static std::string cite(Operation *op, StringRef number) {
  return heed::format(" ({}.{})", op->getName().stripDialect(), number);
}

template <typename Op> static LogicalResult verifyAxes(Op op) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  int64_t previous = -1;
  for (int64_t axis : op.getAxes()) {
    if (axis <= previous || axis >= type.getRank())
      return op.emitOpError() << "has axes [" << op.getAxes()
                              << "], expected them strictly increasing in [0, "
                              << type.getRank() << ")" << cite(op, "c1");
    previous = axis;
  }
  if (op.getAxes().empty())
    return op.emitOpError()
           << "has no axis, expected at least one" << cite(op, "c1");
  return success();
}

template <typename Op> static LogicalResult verifySoftmax(Op op) {
  if (failed(verifyAxes(op)))
    return failure();
  StringRef self = op->getName().stripDialect();
  auto type = cast<RankedTensorType>(op.getInput().getType());
  if (!op.getWhere().empty() &&
      failed(verifyBody(op, op.getWhere(), heed::format("{}.c2", self), "where",
                        type.getRank(), 0,
                        Builder(op.getContext()).getI1Type())))
    return failure();
  if (op.getSink()) {
    SmallVector<int64_t> shape;
    for (int64_t axis = 0; axis < type.getRank(); ++axis)
      if (!llvm::is_contained(op.getAxes(), axis))
        shape.push_back(type.getDimSize(axis));
    auto expected = RankedTensorType::get(shape, type.getElementType());
    if (op.getSink().getType() != expected)
      return op.emitOpError() << "has a sink of " << op.getSink().getType()
                              << ", expected " << expected << cite(op, "c3");
  }
  auto live = cast<RankedTensorType>(op.getLive().getType());
  if (live.getShape() != type.getShape())
    return op.emitOpError() << "has live of " << live
                            << ", expected the input's shape" << cite(op, "c4");
  return success();
}

LogicalResult SoftmaxOp::verify() {
  const Normaliser &normaliser = Normaliser::of(getMap());
  if (getMap() != Map::Exp && !normaliser.hasThreshold())
    return emitOpError() << "has map " << stringifyMap(getMap())
                         << ", expected exp or one with a threshold"
                         << cite(*this, "c5");
  if (getSink() && !normaliser.isShiftable)
    return emitOpError() << "has a sink and map " << stringifyMap(getMap())
                         << ", expected exp" << cite(*this, "c3");
  return verifySoftmax(*this);
}

LogicalResult LogSoftmaxOp::verify() { return verifySoftmax(*this); }

LogicalResult ThresholdOp::verify() {
  if (failed(verifyAxes(*this)))
    return failure();
  if (!Normaliser::of(getMap()).hasThreshold())
    return emitOpError() << "has map " << stringifyMap(getMap())
                         << ", expected one with a threshold"
                         << cite(*this, "c2");
  auto type = cast<RankedTensorType>(getInput().getType());
  SmallVector<int64_t> shape;
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    if (!llvm::is_contained(getAxes(), axis))
      shape.push_back(type.getDimSize(axis));
  auto result = cast<RankedTensorType>(getResult().getType());
  if (result.getElementType() != type.getElementType() ||
      failed(verifyCompatibleShape(result.getShape(), shape)))
    return emitOpError() << "has a result of " << result << ", expected "
                         << RankedTensorType::get(shape, type.getElementType())
                         << cite(*this, "c3");
  return success();
}
