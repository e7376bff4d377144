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

constexpr StringLiteral operandNames[] = {"query", "key", "value", "decay",
                                          "erase"};

} // namespace

Value LinearAttentionOp::part(unsigned which) {
  // Sizes are the first group of operands.
  auto [first, count] = getODSOperandIndexAndLength(1 + which);
  return count ? (*this)->getOperand(first) : Value();
}

AffineMap LinearAttentionOp::map(unsigned which) {
  unsigned place = which - (which == Erase && !getDecay());
  return cast<AffineMapAttr>(getMaps()[place]).getValue();
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

LogicalResult LinearAttentionOp::verify() {
  unsigned loops = numLoops();
  if (getSizes().size() != loops)
    return emitOpError() << "has " << getSizes().size() << " sizes for "
                         << loops << " loop dims (linear_attention.c1)";
  SmallVector<unsigned> present;
  for (unsigned which = 0; which < NumParts; ++which)
    if (part(which))
      present.push_back(which);
  if (getMaps().size() != present.size())
    return emitOpError() << "has " << getMaps().size() << " maps, expected "
                         << present.size() << " (linear_attention.c2)";
  for (unsigned which : present) {
    Value operand = part(which);
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
    bool isValue = which == Values;
    unsigned first = isValue ? firstContract() : firstValue(),
             last = isValue ? firstValue() : loops;
    for (unsigned dim = first; which != Decay && dim < last; ++dim)
      if (own.isFunctionOfDim(dim))
        return emitOpError()
               << "map of " << operandNames[which] << " uses d" << dim << ", a "
               << (isValue ? "contract" : "value")
               << " dim (linear_attention.c3)";
  }
  if (getFresh() && (getStart() || getErase()))
    return emitOpError() << "is fresh, expected no "
                         << (getStart() ? "start" : "erase")
                         << " (linear_attention.c5)";
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
  Value operand = op.part(which);
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

/// The loop dims of a row of the output, as numbers among those but the step.
static SmallVector<unsigned> rowDims(LinearAttentionOp op) {
  SmallVector<unsigned> dims = dimsIn(0, op.getNumBatch());
  dims.append(dimsIn(op.firstValue() - 1, op.getNumValue()));
  return dims;
}

/// Whether there is nothing before \p position; null where zeros are.
static Value isFresh(OpBuilder &b, LinearAttentionOp op, Value position) {
  if (!op.getFresh())
    return {};
  Location loc = op.getLoc();
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, position,
                               arith::ConstantIndexOp::create(b, loc, 0));
}

/// sum_e of operand \p which, query or erase, of the step at \p position, times
/// the state.
static Value readState(OpBuilder &b, LinearAttentionOp op, unsigned which,
                       Value position, Value state) {
  Location loc = op.getLoc();
  unsigned loops = op.numLoops() - 1;
  auto output = cast<RankedTensorType>(op.getOutput().getType());
  SmallVector<int64_t> shape(output.getShape());
  shape.erase(shape.begin() + op.stepDim());
  auto type = RankedTensorType::get(shape, output.getElementType());
  SmallVector<unsigned> outer = dimsIn(0, op.getNumBatch());
  outer.append(dimsIn(op.firstValue(), op.getNumValue()));
  SmallVector<utils::IteratorType> iterators(loops,
                                             utils::IteratorType::parallel);
  for (unsigned d : dimsIn(op.getNumBatch(), op.getNumContract()))
    iterators[d] = utils::IteratorType::reduction;
  StepOperand operand = operandAt(b, op, which, position);
  Value isFirst = which == LinearAttentionOp::Query && op.getBefore()
                      ? isFresh(b, op, position)
                      : Value();
  auto body = [&](OpBuilder &b, Location loc, ValueRange in) {
    Value product = arith::MulFOp::create(b, loc, in[0], in[1]);
    if (isFirst)
      product = arith::SelectOp::create(
          b, loc, isFirst,
          arith::ConstantOp::create(b, loc, b.getZeroAttr(product.getType())),
          product);
    linalg::YieldOp::create(
        b, loc, arith::AddFOp::create(b, loc, in[2], product).getResult());
  };
  return linalg::GenericOp::create(
             b, loc, type, {operand.value, state},
             zeros(b, loc, type, sizesOf(op, outer)),
             {operand.map, mapTo(op, dimsIn(0, loops)), mapTo(op, rowDims(op))},
             iterators, body)
      .getResult(0);
}

/// decay * state + key * what is written, of the step at \p position.
static Value nextState(OpBuilder &b, LinearAttentionOp op, Value position,
                       Value state) {
  Location loc = op.getLoc();
  unsigned loops = op.numLoops() - 1;
  auto type = cast<RankedTensorType>(op.getState().getType());
  SmallVector<unsigned> dims = dimsIn(0, op.numLoops());
  dims.erase(dims.begin() + op.stepDim());
  SmallVector<StepOperand> parts{
      {state, mapTo(op, dimsIn(0, loops))},
      operandAt(b, op, LinearAttentionOp::Key, position),
      operandAt(b, op, LinearAttentionOp::Values, position)};
  bool decays = op.getDecay() != nullptr, erases = op.getErase() != nullptr;
  if (erases)
    parts.push_back(
        {readState(b, op, LinearAttentionOp::Erase, position, state),
         mapTo(op, rowDims(op))});
  if (decays)
    parts.push_back(operandAt(b, op, LinearAttentionOp::Decay, position));
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (const StepOperand &part : parts) {
    inputs.push_back(part.value);
    maps.push_back(part.map);
  }
  maps.push_back(mapTo(op, dimsIn(0, loops)));
  SmallVector<utils::IteratorType> iterators(loops,
                                             utils::IteratorType::parallel);
  Value isFirst = isFresh(b, op, position);
  auto body = [&](OpBuilder &b, Location loc, ValueRange in) {
    Value kept = in[0], key = in[1], written = in[2];
    if (erases)
      written = arith::SubFOp::create(b, loc, written, in[3]);
    if (decays)
      kept = arith::MulFOp::create(b, loc, in[3 + erases], kept);
    if (decays && isFirst)
      kept = arith::SelectOp::create(b, loc, isFirst, in[0], kept);
    Value product = arith::MulFOp::create(b, loc, key, written);
    linalg::YieldOp::create(
        b, loc, arith::AddFOp::create(b, loc, kept, product).getResult());
  };
  return linalg::GenericOp::create(b, loc, type, inputs,
                                   emptyTensor(b, loc, type, sizesOf(op, dims)),
                                   maps, iterators, body)
      .getResult(0);
}

std::pair<Value, Value>
LinearAttentionOp::makeStep(OpBuilder &b, Value position, Value state) {
  Value next = nextState(b, *this, position, state);
  return {next,
          readState(b, *this, Query, position, getBefore() ? state : next)};
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
