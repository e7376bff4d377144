//===- SimplifyBodies.cpp - smaller bodies before and after fusing --------===//
#include "passes/Fuse/SimplifyBodies.h"
#include "dialects/Attn/Dialect.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;

void heed::roundChoice(arith::TruncFOp op) {
  auto choice = op.getIn().getDefiningOp<arith::SelectOp>();
  auto type = dyn_cast<FloatType>(op.getType());
  if (!choice || !type)
    return;
  OpBuilder b(op);
  SmallVector<Value, 2> rounded;
  for (Value side : {choice.getTrueValue(), choice.getFalseValue()}) {
    auto number = side.getDefiningOp<arith::ConstantOp>();
    auto value = number ? dyn_cast<FloatAttr>(number.getValue()) : FloatAttr();
    if (!value)
      return;
    APFloat narrow = value.getValue();
    bool lossy;
    narrow.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                   &lossy);
    rounded.push_back(arith::ConstantOp::create(b, op.getLoc(),
                                                FloatAttr::get(type, narrow)));
  }
  Value result = arith::SelectOp::create(b, op.getLoc(), choice.getCondition(),
                                         rounded[0], rounded[1]);
  if (mutated("fuse-elementwise.negate-choice"))
    result = arith::SelectOp::create(b, op.getLoc(), choice.getCondition(),
                                     rounded[1], rounded[0]);
  op.replaceAllUsesWith(result);
  op.erase();
  if (choice->use_empty())
    choice->erase();
}

void heed::addOneToExpM1(arith::AddFOp op) {
  Value x = op.getLhs(), one = op.getRhs();
  if (!matchPattern(one, m_OneFloat()))
    std::swap(x, one);
  if (!matchPattern(one, m_OneFloat()))
    return;
  auto choice = x.getDefiningOp<arith::SelectOp>();
  auto isExpM1 = [](Value value) {
    return isa_and_nonnull<math::ExpM1Op>(value.getDefiningOp());
  };
  if (choice
          ? !isExpM1(choice.getTrueValue()) && !isExpM1(choice.getFalseValue())
          : !isExpM1(x))
    return;
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto plusOne = [&](Value side) -> Value {
    if (auto low = side.getDefiningOp<math::ExpM1Op>())
      return math::ExpOp::create(b, loc, low.getOperand());
    if (mutated("fuse-elementwise.one-side-plus-one"))
      return side;
    return arith::AddFOp::create(b, loc, side, one, op.getFastmathAttr());
  };
  Value sum;
  if (choice) {
    Value yes = plusOne(choice.getTrueValue()),
          no = plusOne(choice.getFalseValue());
    sum = arith::SelectOp::create(b, loc, choice.getCondition(), yes, no);
  } else {
    sum = plusOne(x);
  }
  op.replaceAllUsesWith(sum);
  op.erase();
}

void heed::dropEmpty(Operation *op) {
  auto isEmpty = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && llvm::is_contained(tensor.getShape(), 0);
  };
  if (auto loops = dyn_cast<linalg::LinalgOp>(op)) {
    if (loops.hasPureTensorSemantics() &&
        (llvm::is_contained(loops.getStaticLoopRanges(), 0) ||
         (llvm::is_contained(loops.getStaticLoopRanges(), 1) &&
          mutated("fuse-elementwise.drop-loops-of-one"))))
      op->replaceAllUsesWith(loops.getDpsInits());
  } else if (isa<attn::SoftmaxOp, attn::LogSoftmaxOp>(op)) {
    Value input = op->getOperand(0);
    if (!isEmpty(input.getType()))
      return;
    OpBuilder b(op);
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(b, op->getLoc(), input);
    op->getResult(0).replaceAllUsesWith(input);
    op->getResult(1).replaceAllUsesWith(
        tensor::EmptyOp::create(b, op->getLoc(), sizes, b.getI1Type()));
  }
}
