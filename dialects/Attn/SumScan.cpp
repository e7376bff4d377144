//===- SumScan.cpp - attn.sum_scan: checks, definition --------------------===//
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/Rows.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace heed::attn;

/// Whether \p value, computed in a region, depends on \p arg.
static bool dependsOn(Value value, Value arg) {
  llvm::SetVector<Value> open;
  open.insert(value);
  for (unsigned k = 0; k < open.size(); ++k)
    if (Operation *op = open[k].getDefiningOp())
      open.insert(op->operand_begin(), op->operand_end());
  return open.contains(arg);
}

/// Whether the terms of held sums are there, each made of earlier ones alone.
static LogicalResult verifyHold(SumScanOp op, ArrayRef<Type> taken,
                                ArrayRef<Type> held) {
  if (held.empty() != op.getHold().empty())
    return op.emitOpError() << "holds " << held.size() << " sums and has "
                            << (op.getHold().empty() ? "no" : "a")
                            << " region 'hold' (sum_scan.c6)";
  unsigned rank = op.getSizes().size();
  if (held.empty())
    return success();
  if (failed(verifyStepRegion(op, op.getHold(), "hold", rank, taken, held,
                              "sum_scan.c6")))
    return failure();
  Block &body = op.getHold().front();
  ArrayRef<BlockArgument> sums = body.getArguments().take_back(held.size());
  for (auto [p, term] : llvm::enumerate(body.getTerminator()->getOperands()))
    for (auto [q, sum] : llvm::enumerate(sums.drop_front(p)))
      if (dependsOn(term, sum))
        return op.emitOpError() << "makes held sum " << p << " of number "
                                << p + q << ", expected of earlier ones "
                                << "(sum_scan.c6)";
  return success();
}

/// Whether rows and states have the axes that they must have.
static LogicalResult verifyAxes(SumScanOp op, RankedTensorType state) {
  auto isState = [&](Type type) {
    return cast<RankedTensorType>(type).getShape() == state.getShape();
  };
  if (!llvm::equal(op.getStarts().getTypes(), op.getStates().getTypes()) ||
      !llvm::all_of(op.getStarts().getTypes(), isState))
    return op.emitOpError() << "has the states (" << op.getStates().getTypes()
                            << ") for (" << op.getStarts().getTypes()
                            << "), expected the same, alike (sum_scan.c3)";
  SmallVector<Type> rows(op.getRows().getTypes());
  llvm::append_range(rows, op.getHeld().getTypes());
  for (Type each : rows) {
    auto row = cast<RankedTensorType>(each);
    bool isRow = row.getRank() == state.getRank() &&
                 isa<FloatType>(row.getElementType());
    for (int64_t axis = 0; isRow && axis < state.getRank(); ++axis)
      isRow = axis == int64_t(op.sumAxis()) ||
              row.getDimSize(axis) == state.getDimSize(axis);
    if (!isRow)
      return op.emitOpError() << "has the row " << row << " for " << state
                              << ", expected its axes, but steps for axis "
                              << op.sumAxis() << " (sum_scan.c5)";
  }
  return success();
}

LogicalResult SumScanOp::verify() {
  int64_t rank = getSizes().size();
  auto state = getStarts().empty()
                   ? RankedTensorType()
                   : cast<RankedTensorType>(getStarts()[0].getType());
  if (!state || rank < 2 || state.getRank() != rank ||
      state.isDynamicDim(sumAxis()) || !isa<FloatType>(state.getElementType()))
    return emitOpError() << "has the states (" << getStarts().getTypes()
                         << ") with " << rank
                         << " sizes, expected at least a state of floats and "
                            "two sizes, the last but one known (sum_scan.c4)";
  auto elements = [](TypeRange types) {
    return llvm::map_to_vector(
        types, [](Type type) { return getElementTypeOrSelf(type); });
  };
  SmallVector<Type> states = elements(getStarts().getTypes()),
                    left = elements(getRows().getTypes()),
                    held = elements(getHeld().getTypes()), taken = states;
  llvm::append_range(taken, held);
  if (failed(verifyStepRegion(*this, getNext(), "next", rank, taken, states,
                              "sum_scan.c1")) ||
      failed(verifyStepRegion(*this, getLeave(), "leave", rank, taken, left,
                              "sum_scan.c2")) ||
      failed(verifyHold(*this, taken, held)))
    return failure();
  return verifyAxes(*this, state);
}

//===----------------------------------------------------------------------===//
// Definition
//===----------------------------------------------------------------------===//

namespace {

/// One op as a loop over its steps.
class SumScanLoop {
public:
  SumScanLoop(OpBuilder &b, SumScanOp op)
      : b(b), op(op), loc(op.getLoc()),
        state(cast<RankedTensorType>(op.getStarts()[0].getType())) {}
  SmallVector<Value> write();

private:
  Value emptyOf(RankedTensorType type, bool isRow);
  /// A tensor with the extents of a state and the elements of \p other.
  Value emptyLike(Value other) {
    return emptyOf(
        RankedTensorType::get(state.getShape(), getElementTypeOrSelf(other)),
        /*isRow=*/false);
  }
  ValueRange compute(Region &region, Value step, ValueRange taken,
                     TypeRange ends);
  Value sumOver(Value terms);
  Value spread(Value sum);
  RowPlace rowAt(RankedTensorType type, Value turn);

  OpBuilder &b;
  SumScanOp op;
  Location loc;
  RankedTensorType state;
};

} // namespace

/// A tensor of \p type, with the extents of a row, a state, or (with an axis
/// less) of a row at one step.
Value SumScanLoop::emptyOf(RankedTensorType type, bool isRow) {
  SmallVector<Value> extents(op.getSizes()), dynamic;
  if (type.getRank() < int64_t(extents.size()))
    extents.erase(extents.begin() + op.sumAxis());
  else if (isRow)
    extents[op.sumAxis()] = op.getSteps();
  for (auto [axis, extent] : llvm::enumerate(extents))
    if (type.isDynamicDim(axis))
      dynamic.push_back(extent);
  return tensor::EmptyOp::create(b, loc, type, dynamic);
}

/// What \p region makes of \p taken in \p step, everywhere.
ValueRange SumScanLoop::compute(Region &region, Value step, ValueRange taken,
                                TypeRange ends) {
  if (ends.empty())
    return {};
  SmallVector<Value> outs;
  for (Type type : ends)
    outs.push_back(emptyOf(
        RankedTensorType::get(state.getShape(), getElementTypeOrSelf(type)),
        /*isRow=*/false));
  return computeStep(b, loc, region, step, taken, outs);
}

/// The sum of \p terms over the axis of the op.
Value SumScanLoop::sumOver(Value terms) {
  SmallVector<int64_t> shape(state.getShape());
  shape.erase(shape.begin() + op.sumAxis());
  Type type = getElementTypeOrSelf(terms);
  auto sum = RankedTensorType::get(shape, type);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  Value start =
      linalg::FillOp::create(b, loc, zero, emptyOf(sum, /*isRow=*/false))
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

/// \p sum for all places that it was taken over.
Value SumScanLoop::spread(Value sum) {
  return linalg::BroadcastOp::create(b, loc, sum, emptyLike(sum), op.sumAxis())
      ->getResult(0);
}

/// Where a row of turn \p turn lies.
RowPlace SumScanLoop::rowAt(RankedTensorType type, Value turn) {
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

SmallVector<Value> SumScanLoop::write() {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> carried, rows(op.getRows());
  llvm::append_range(rows, op.getHeld());
  for (Value row : rows)
    carried.push_back(
        emptyOf(cast<RankedTensorType>(row.getType()), /*isRow=*/true));
  llvm::append_range(carried, op.getStarts());
  auto loop = scf::ForOp::create(b, loc, zero, op.getSteps(), one, carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  Value turn = loop.getInductionVar();
  Value step = arith::AddIOp::create(b, loc, op.getFrom(), turn);
  ValueRange args = loop.getRegionIterArgs();
  SmallVector<Value> sums, taken(args.drop_front(rows.size()));
  size_t numStates = taken.size(), numHeld = op.getHeld().size();
  // A term is made of earlier sums: of the others nothing is read.
  for (Value held : op.getHeld())
    taken.push_back(emptyLike(held));
  for (size_t p = 0; p < numHeld; ++p) {
    sums.push_back(sumOver(
        compute(op.getHold(), step, taken, op.getHeld().getTypes())[p]));
    taken[numStates + p] = spread(sums.back());
  }
  ValueRange after =
      compute(op.getNext(), step, taken, op.getStarts().getTypes());
  llvm::copy(after, taken.begin());
  SmallVector<Value> left, yields;
  for (Value terms :
       compute(op.getLeave(), step, taken, op.getRows().getTypes()))
    left.push_back(sumOver(terms));
  llvm::append_range(left, sums);
  for (auto [row, all] : llvm::zip(left, args))
    yields.push_back(writeRow(
        b, loc, row, all, rowAt(cast<RankedTensorType>(all.getType()), turn)));
  llvm::append_range(yields, after);
  scf::YieldOp::create(b, loc, yields);
  return SmallVector<Value>(loop.getResults());
}

FailureOr<SmallVector<Value>> SumScanOp::decomposeOperation(OpBuilder &b) {
  return SumScanLoop(b, *this).write();
}
