//===- LinearAttention.cpp - attn.linear_attention: checks, definition ----===//
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/Rows.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace heed::attn;

namespace {

/// Loop dims by their number, in order.
SmallVector<unsigned> dimsIn(unsigned first, unsigned count) {
  return llvm::to_vector(llvm::seq(first, first + count));
}

constexpr StringLiteral operandNames[] = {"query", "key", "value", "decay"};

} // namespace

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

LogicalResult LinearAttentionOp::verify() {
  unsigned loops = numLoops();
  if (getSizes().size() != loops)
    return emitOpError() << "has " << getSizes().size() << " sizes for "
                         << loops << " loop dims (linear_attention.c1)";
  SmallVector<Value> operands{getQuery(), getKey(), getValue()};
  if (getDecay())
    operands.push_back(getDecay());
  if (getMaps().size() != operands.size())
    return emitOpError() << "has " << getMaps().size() << " maps, expected "
                         << operands.size() << " (linear_attention.c2)";
  for (auto [which, operand] : llvm::enumerate(operands)) {
    AffineMap own = map(which);
    if (own.getNumDims() != loops || own.getNumSymbols() ||
        !own.isProjectedPermutation() ||
        own.getNumResults() !=
            cast<RankedTensorType>(operand.getType()).getRank())
      return emitOpError() << "map of " << operandNames[which]
                           << " expected to take " << loops
                           << " dims and to give each axis of "
                           << operand.getType()
                           << " another of them (linear_attention.c2)";
    bool isValue = operand == getValue() && which == 2;
    unsigned first = isValue ? firstContract() : firstValue(),
             last = isValue ? firstValue() : loops;
    for (unsigned dim = first; which < 3 && dim < last; ++dim)
      if (own.isFunctionOfDim(dim))
        return emitOpError()
               << "map of " << operandNames[which] << " uses d" << dim << ", a "
               << (isValue ? "contract" : "value")
               << " dim (linear_attention.c3)";
  }
  auto output = cast<RankedTensorType>(getOutput().getType());
  auto state = cast<RankedTensorType>(getState().getType());
  if (output.getRank() != int64_t(getNumBatch() + 1 + getNumValue()) ||
      state.getRank() != int64_t(loops) - 1 ||
      (getStart() && getStart().getType() != state))
    return emitOpError() << "has results " << output << " and " << state
                         << ", expected batch dims, step and value dims, and "
                            "batch, contract and value dims as the start has "
                            "them (linear_attention.c4)";
  return success();
}

//===----------------------------------------------------------------------===//
// Definition
//===----------------------------------------------------------------------===//

namespace {

/// A tensor of \p type, whose extents are \p sizes.
Value emptyTensor(OpBuilder &b, Location loc, RankedTensorType type,
                  ValueRange sizes) {
  SmallVector<Value> dynamic;
  for (auto [axis, size] : llvm::enumerate(sizes))
    if (type.isDynamicDim(axis))
      dynamic.push_back(size);
  return tensor::EmptyOp::create(b, loc, type, dynamic);
}

Value zeros(OpBuilder &b, Location loc, RankedTensorType type,
            ValueRange sizes) {
  Value zero =
      arith::ConstantOp::create(b, loc, FloatAttr::get(b.getF32Type(), 0.0));
  return linalg::FillOp::create(b, loc, zero, emptyTensor(b, loc, type, sizes))
      .getResult(0);
}

/// The sizes of these loop dims.
SmallVector<Value> sizesOf(LinearAttentionOp op, ArrayRef<unsigned> dims) {
  return llvm::map_to_vector(
      dims, [&](unsigned d) -> Value { return op.getSizes()[d]; });
}

/// An operand of a step: the row at \p position of what has steps.
struct StepOperand {
  Value value;
  AffineMap map; ///< over the loop dims of the op but the step
};

StepOperand operandAt(OpBuilder &b, LinearAttentionOp op, unsigned which,
                      Value position) {
  Location loc = op.getLoc();
  Value operand = which < 3 ? op->getOperand(op.getSizes().size() + which)
                            : Value(op.getDecay());
  AffineMap map = op.map(which);
  unsigned step = op.stepDim();
  SmallVector<AffineExpr> results;
  std::optional<unsigned> axis;
  for (auto [k, result] : llvm::enumerate(map.getResults())) {
    unsigned dim = cast<AffineDimExpr>(result).getPosition();
    if (dim == step)
      axis = k;
    else
      results.push_back(b.getAffineDimExpr(dim - (dim > step)));
  }
  AffineMap own =
      AffineMap::get(op.numLoops() - 1, 0, results, op.getContext());
  auto type = cast<RankedTensorType>(operand.getType());
  if (!axis)
    return {operand, own};
  RowPlace place;
  SmallVector<int64_t> shape;
  for (auto [k, result] : llvm::enumerate(map.getResults())) {
    bool isStep = k == *axis;
    Value size = op.getSizes()[cast<AffineDimExpr>(result).getPosition()];
    OpFoldResult extent = isStep ? OpFoldResult(b.getIndexAttr(1))
                          : type.isDynamicDim(k)
                              ? getAsOpFoldResult(size)
                              : b.getIndexAttr(type.getDimSize(k));
    place.sizes.push_back(extent);
    place.offsets.push_back(isStep ? OpFoldResult(position)
                                   : b.getIndexAttr(0));
    place.dropped.push_back(isStep);
    if (!isStep)
      shape.push_back(
          getConstantIntValue(extent).value_or(ShapedType::kDynamic));
  }
  auto row = RankedTensorType::get(shape, type.getElementType());
  return {readRow(b, loc, operand, place, row), own};
}

/// The loop dims of \p op but the step, as numbers among themselves.
AffineMap mapTo(LinearAttentionOp op, ArrayRef<unsigned> dims) {
  return AffineMap::getMultiDimMapWithTargets(op.numLoops() - 1, dims,
                                              op.getContext());
}

} // namespace

Value LinearAttentionOp::makeStart(OpBuilder &b) {
  if (getStart())
    return getStart();
  SmallVector<unsigned> dims = dimsIn(0, numLoops());
  dims.erase(dims.begin() + stepDim());
  return zeros(b, getLoc(), cast<RankedTensorType>(getState().getType()),
               sizesOf(*this, dims));
}

/// decay * state + key * value, of the step at \p position.
static Value nextState(OpBuilder &b, LinearAttentionOp op, Value position,
                       Value state) {
  Location loc = op.getLoc();
  unsigned loops = op.numLoops() - 1;
  auto type = cast<RankedTensorType>(op.getState().getType());
  SmallVector<unsigned> dims = dimsIn(0, op.numLoops());
  dims.erase(dims.begin() + op.stepDim());
  SmallVector<StepOperand> parts{operandAt(b, op, 1, position),
                                 operandAt(b, op, 2, position)};
  if (op.getDecay())
    parts.push_back(operandAt(b, op, 3, position));
  parts.push_back({state, mapTo(op, dimsIn(0, loops))});
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (const StepOperand &part : parts) {
    inputs.push_back(part.value);
    maps.push_back(part.map);
  }
  maps.push_back(mapTo(op, dimsIn(0, loops)));
  SmallVector<utils::IteratorType> iterators(loops,
                                             utils::IteratorType::parallel);
  auto body = [](OpBuilder &b, Location loc, ValueRange in) {
    Value kept = in[in.size() - 2];
    if (in.size() == 5)
      kept = arith::MulFOp::create(b, loc, in[2], kept);
    Value product = arith::MulFOp::create(b, loc, in[0], in[1]);
    linalg::YieldOp::create(
        b, loc, arith::AddFOp::create(b, loc, kept, product).getResult());
  };
  return linalg::GenericOp::create(b, loc, type, inputs,
                                   emptyTensor(b, loc, type, sizesOf(op, dims)),
                                   maps, iterators, body)
      .getResult(0);
}

/// sum_e query * state, of the step at \p position.
static Value outputRow(OpBuilder &b, LinearAttentionOp op, Value position,
                       Value state) {
  Location loc = op.getLoc();
  unsigned loops = op.numLoops() - 1, first = op.getNumBatch();
  auto output = cast<RankedTensorType>(op.getOutput().getType());
  SmallVector<int64_t> shape(output.getShape());
  shape.erase(shape.begin() + op.stepDim());
  auto type = RankedTensorType::get(shape, output.getElementType());
  SmallVector<unsigned> own = dimsIn(0, first), outer = dimsIn(0, first);
  own.append(dimsIn(first + op.getNumContract(), op.getNumValue()));
  outer.append(dimsIn(op.firstValue(), op.getNumValue()));
  SmallVector<utils::IteratorType> iterators(loops,
                                             utils::IteratorType::parallel);
  for (unsigned d : dimsIn(first, op.getNumContract()))
    iterators[d] = utils::IteratorType::reduction;
  StepOperand query = operandAt(b, op, 0, position);
  auto body = [](OpBuilder &b, Location loc, ValueRange in) {
    Value product = arith::MulFOp::create(b, loc, in[0], in[1]);
    linalg::YieldOp::create(
        b, loc, arith::AddFOp::create(b, loc, in[2], product).getResult());
  };
  return linalg::GenericOp::create(
             b, loc, type, {query.value, state},
             zeros(b, loc, type, sizesOf(op, outer)),
             {query.map, mapTo(op, dimsIn(0, loops)), mapTo(op, own)},
             iterators, body)
      .getResult(0);
}

std::pair<Value, Value>
LinearAttentionOp::makeStep(OpBuilder &b, Value position, Value state) {
  Value next = nextState(b, *this, position, state);
  return {next, outputRow(b, *this, position, getBefore() ? state : next)};
}

FailureOr<SmallVector<Value>>
LinearAttentionOp::decomposeOperation(OpBuilder &b) {
  Location loc = getLoc();
  SmallVector<unsigned> dims = dimsIn(0, firstContract());
  dims.append(dimsIn(firstValue(), getNumValue()));
  Value out = emptyTensor(b, loc, cast<RankedTensorType>(getOutput().getType()),
                          sizesOf(*this, dims));
  Value start = makeStart(b);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  auto scan =
      ScanOp::create(b, loc, zero, getSizes()[stepDim()], ValueRange(start),
                     ValueRange(out), {int64_t(stepDim())}, {false});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(&scan.getBody().front());
  auto [next, row] = makeStep(b, scan.step(), scan.carried()[0]);
  StepOp::create(b, loc, ValueRange(next), ValueRange(row));
  return SmallVector<Value>{scan.getStacked()[0], scan.getStates()[0]};
}
