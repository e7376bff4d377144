//===- ElementScan.cpp - attn.element_scan: checks, definition ------------===//
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/Rows.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace heed::attn;

LogicalResult ElementScanOp::verify() {
  SmallVector<Type> states, both, left;
  for (Type start : getStarts().getTypes())
    states.push_back(getElementTypeOrSelf(start));
  both = states;
  llvm::append_range(both, states);
  for (Type row : getRows().getTypes())
    left.push_back(getElementTypeOrSelf(row));
  int64_t rank = getSizes().size();
  if (failed(verifyStepRegion(*this, getNext(), "next", rank, states, states,
                              "element_scan.c1")) ||
      failed(verifyStepRegion(*this, getLeave(), "leave", rank, both, left,
                              "element_scan.c2")))
    return failure();
  auto isState = [&](Type type) {
    return cast<RankedTensorType>(type).getRank() == rank;
  };
  if (!llvm::equal(getStarts().getTypes(), getStates().getTypes()) ||
      !llvm::all_of(getStarts().getTypes(), isState))
    return emitOpError() << "has the states (" << getStates().getTypes()
                         << ") for (" << getStarts().getTypes()
                         << "), expected the same, with " << rank
                         << " axes (element_scan.c3)";
  if (getRows().empty() || getStarts().empty() || int64_t(getAxis()) > rank)
    return emitOpError()
           << "has " << getRows().size() << " rows of " << getStarts().size()
           << " states along axis " << getAxis()
           << ", expected at least one of each, and an axis up to " << rank
           << " (element_scan.c4)";
  auto state = cast<RankedTensorType>(getStarts()[0].getType());
  for (Type type : getRows().getTypes()) {
    SmallVector<int64_t> shape(cast<RankedTensorType>(type).getShape());
    if (getAxis() < shape.size())
      shape.erase(shape.begin() + getAxis());
    if (ArrayRef<int64_t>(shape) != state.getShape())
      return emitOpError() << "has the row " << type << " for " << state
                           << ", expected its axes and axis " << getAxis()
                           << " (element_scan.c4)";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Definition
//===----------------------------------------------------------------------===//

/// A tensor of \p type, with the extents of \p op.
static Value emptyOf(OpBuilder &b, ElementScanOp op, RankedTensorType type) {
  SmallVector<Value> extents(op.getSizes()), dynamic;
  if (type.getRank() > int64_t(extents.size()))
    extents.insert(extents.begin() + op.getAxis(), op.getSteps());
  for (auto [axis, extent] : llvm::enumerate(extents))
    if (type.isDynamicDim(axis))
      dynamic.push_back(extent);
  return tensor::EmptyOp::create(b, op.getLoc(), type, dynamic);
}

/// What \p region makes of \p taken, of \p types, element by element.
static ValueRange compute(OpBuilder &b, ElementScanOp op, Region &region,
                          Value step, ValueRange taken, ArrayRef<Type> types) {
  SmallVector<Value> outs;
  for (Type type : types)
    outs.push_back(emptyOf(b, op, cast<RankedTensorType>(type)));
  return computeStep(b, op.getLoc(), region, step, taken, outs);
}

/// Where a row of turn \p turn lies.
static RowPlace rowAt(OpBuilder &b, ElementScanOp op, RankedTensorType type,
                      Value turn) {
  RowPlace place;
  place.offsets.assign(type.getRank(), b.getIndexAttr(0));
  place.dropped.assign(type.getRank(), false);
  for (auto [axis, size] : llvm::enumerate(op.getSizes()))
    place.sizes.push_back(
        type.isDynamicDim(axis + (axis >= op.getAxis()))
            ? OpFoldResult(size)
            : b.getIndexAttr(type.getDimSize(axis + (axis >= op.getAxis()))));
  place.sizes.insert(place.sizes.begin() + op.getAxis(), b.getIndexAttr(1));
  if (op.getReversed()) {
    Value rest = arith::SubIOp::create(b, op.getLoc(), op.getSteps(), turn);
    turn = arith::SubIOp::create(
        b, op.getLoc(), rest,
        arith::ConstantIndexOp::create(b, op.getLoc(), 1));
  }
  place.offsets[op.getAxis()] = turn;
  place.dropped[op.getAxis()] = true;
  return place;
}

FailureOr<SmallVector<Value>> ElementScanOp::decomposeOperation(OpBuilder &b) {
  Location loc = getLoc();
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> carried;
  SmallVector<Type> states(getStarts().getTypes()), rows;
  for (Value row : getRows()) {
    auto type = cast<RankedTensorType>(row.getType());
    carried.push_back(emptyOf(b, *this, type));
    rows.push_back(RankedTensorType::get(
        cast<RankedTensorType>(states[0]).getShape(), type.getElementType()));
  }
  llvm::append_range(carried, getStarts());
  auto loop = scf::ForOp::create(b, loc, zero, getSteps(), one, carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  Value turn = loop.getInductionVar();
  Value step = arith::AddIOp::create(b, loc, getFrom(), turn);
  ValueRange args = loop.getRegionIterArgs();
  SmallVector<Value> both(args.drop_front(rows.size()));
  SmallVector<Value> after = compute(b, *this, getNext(), step, both, states);
  llvm::append_range(both, after);
  SmallVector<Value> yields;
  for (auto [row, all] :
       llvm::zip(compute(b, *this, getLeave(), step, both, rows), args))
    yields.push_back(
        writeRow(b, loc, row, all,
                 rowAt(b, *this, cast<RankedTensorType>(all.getType()), turn)));
  llvm::append_range(yields, after);
  scf::YieldOp::create(b, loc, yields);
  return SmallVector<Value>(loop.getResults());
}
