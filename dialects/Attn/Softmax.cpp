//===- Softmax.cpp - attn.softmax and attn.log_softmax: checks ------------===//
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/Regions.h"

using namespace mlir;
using namespace heed::attn;

template <typename Op> static LogicalResult verifySoftmax(Op op) {
  StringRef self = Op::getOperationName().drop_front(strlen("attn."));
  auto cite = [&](const char *number) {
    return " (" + self.str() + "." + number + ")";
  };
  auto type = cast<RankedTensorType>(op.getInput().getType());
  int64_t previous = -1;
  for (int64_t axis : op.getAxes()) {
    if (axis <= previous || axis >= type.getRank())
      return op.emitOpError() << "has axes [" << op.getAxes()
                              << "], expected them strictly increasing in [0, "
                              << type.getRank() << ")" << cite("c1");
    previous = axis;
  }
  if (op.getAxes().empty())
    return op.emitOpError()
           << "has no axis, expected at least one" << cite("c1");
  if (!op.getWhere().empty() &&
      failed(verifyBody(op, op.getWhere(), (self + ".c2").str(), "where",
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
                              << ", expected " << expected << cite("c3");
  }
  auto live = cast<RankedTensorType>(op.getLive().getType());
  if (live.getShape() != type.getShape())
    return op.emitOpError() << "has live of " << live
                            << ", expected the input's shape" << cite("c4");
  return success();
}

LogicalResult SoftmaxOp::verify() { return verifySoftmax(*this); }
LogicalResult LogSoftmaxOp::verify() { return verifySoftmax(*this); }
