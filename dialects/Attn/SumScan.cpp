//===- SumScan.cpp - attn.sum_scan: checks, definition --------------------===//
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/Rows.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace heed::attn;

LogicalResult SumScanOp::verify() {
  int64_t rank = getSizes().size();
  auto state = getStarts().empty()
                   ? RankedTensorType()
                   : cast<RankedTensorType>(getStarts()[0].getType());
  if (getRows().empty() || !state || rank < 2 || state.getRank() != rank ||
      state.isDynamicDim(sumAxis()) || !isa<FloatType>(state.getElementType()))
    return emitOpError()
           << "has " << getRows().size() << " rows of the states ("
           << getStarts().getTypes() << ") with " << rank
           << " sizes, expected at least a row, a state of floats "
              "and two sizes, the last but one known "
              "(sum_scan.c4)";
  SmallVector<Type> states,
      left(getRows().size(), Type(state.getElementType()));
  for (Type start : getStarts().getTypes())
    states.push_back(getElementTypeOrSelf(start));
  if (failed(verifyStepRegion(*this, getNext(), "next", rank, states, states,
                              "sum_scan.c1")) ||
      failed(verifyStepRegion(*this, getLeave(), "leave", rank, states, left,
                              "sum_scan.c2")))
    return failure();
  auto isState = [&](Type type) {
    return cast<RankedTensorType>(type).getShape() == state.getShape();
  };
  if (!llvm::equal(getStarts().getTypes(), getStates().getTypes()) ||
      !llvm::all_of(getStarts().getTypes(), isState))
    return emitOpError() << "has the states (" << getStates().getTypes()
                         << ") for (" << getStarts().getTypes()
                         << "), expected the same, alike (sum_scan.c3)";
  for (Type each : getRows().getTypes()) {
    auto row = cast<RankedTensorType>(each);
    bool isRow =
        row.getRank() == rank && row.getElementType() == state.getElementType();
    for (int64_t axis = 0; isRow && axis < rank; ++axis)
      isRow = axis == int64_t(sumAxis()) ||
              row.getDimSize(axis) == state.getDimSize(axis);
    if (!isRow)
      return emitOpError() << "has the row " << row << " for " << state
                           << ", expected its axes, but steps for axis "
                           << sumAxis() << " (sum_scan.c5)";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Definition
//===----------------------------------------------------------------------===//

/// A tensor of \p type, with the extents of \p op: of a row, a state, or (with
/// an axis less) of a row at one step.
static Value emptyOf(OpBuilder &b, SumScanOp op, RankedTensorType type,
                     bool isRow) {
  SmallVector<Value> extents(op.getSizes()), dynamic;
  if (type.getRank() < int64_t(extents.size()))
    extents.erase(extents.begin() + op.sumAxis());
  else if (isRow)
    extents[op.sumAxis()] = op.getSteps();
  for (auto [axis, extent] : llvm::enumerate(extents))
    if (type.isDynamicDim(axis))
      dynamic.push_back(extent);
  return tensor::EmptyOp::create(b, op.getLoc(), type, dynamic);
}

/// The sum of \p terms over the axis of \p op.
static Value sumOver(OpBuilder &b, SumScanOp op, Value terms) {
  auto type = cast<RankedTensorType>(terms.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + op.sumAxis());
  auto sum = RankedTensorType::get(shape, type.getElementType());
  Location loc = op.getLoc();
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  Value start =
      linalg::FillOp::create(b, loc, zero, emptyOf(b, op, sum, /*isRow=*/false))
          .getResult(0);
  return linalg::ReduceOp::create(
             b, loc, terms, start, op.sumAxis(),
             [](OpBuilder &inner, Location at, ValueRange in) {
               linalg::YieldOp::create(
                   inner, at,
                   arith::AddFOp::create(inner, at, in[1], in[0]).getResult());
             })
      .getResult(0);
}

/// Where a row of turn \p turn lies.
static RowPlace rowAt(OpBuilder &b, SumScanOp op, RankedTensorType type,
                      Value turn) {
  RowPlace place;
  place.offsets.assign(type.getRank(), b.getIndexAttr(0));
  place.dropped.assign(type.getRank(), false);
  for (auto [axis, size] : llvm::enumerate(op.getSizes()))
    place.sizes.push_back(type.isDynamicDim(axis)
                              ? OpFoldResult(size)
                              : b.getIndexAttr(type.getDimSize(axis)));
  place.sizes[op.sumAxis()] = b.getIndexAttr(1);
  place.offsets[op.sumAxis()] = turn;
  place.dropped[op.sumAxis()] = true;
  return place;
}

FailureOr<SmallVector<Value>> SumScanOp::decomposeOperation(OpBuilder &b) {
  Location loc = getLoc();
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> carried;
  for (Value row : getRows())
    carried.push_back(emptyOf(b, *this, cast<RankedTensorType>(row.getType()),
                              /*isRow=*/true));
  llvm::append_range(carried, getStarts());
  auto loop = scf::ForOp::create(b, loc, zero, getSteps(), one, carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  Value turn = loop.getInductionVar();
  Value step = arith::AddIOp::create(b, loc, getFrom(), turn);
  auto state = cast<RankedTensorType>(getStarts()[0].getType());
  auto compute = [&](Region &region, ValueRange taken, TypeRange types) {
    SmallVector<Value> outs;
    for (Type type : types)
      outs.push_back(emptyOf(
          b, *this,
          RankedTensorType::get(state.getShape(), getElementTypeOrSelf(type)),
          /*isRow=*/false));
    return computeStep(b, loc, region, step, taken, outs);
  };
  ValueRange args = loop.getRegionIterArgs();
  unsigned numRows = getRows().size();
  ValueRange after =
      compute(getNext(), args.drop_front(numRows), getStarts().getTypes());
  SmallVector<Value> yields;
  for (auto [terms, all] :
       llvm::zip(compute(getLeave(), after, getRows().getTypes()), args))
    yields.push_back(
        writeRow(b, loc, sumOver(b, *this, terms), all,
                 rowAt(b, *this, cast<RankedTensorType>(all.getType()), turn)));
  llvm::append_range(yields, after);
  scf::YieldOp::create(b, loc, yields);
  return SmallVector<Value>(loop.getResults());
}
