//===- Recurrence.cpp - attn.recurrence: checks, definition ---------------===//
#include "dialects/Attn/Dialect.h"
#include "dialects/Attn/Rows.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace heed::attn;

LogicalResult heed::attn::verifyStepRegion(Operation *op, Region &region,
                                           StringRef name, unsigned rank,
                                           ArrayRef<Type> taken,
                                           ArrayRef<Type> ended,
                                           StringRef constraint) {
  Builder b(op->getContext());
  SmallVector<Type> expected(1 + rank, b.getIndexType());
  llvm::append_range(expected, taken);
  Block &body = region.front();
  auto end = dyn_cast_if_present<NextOp>(
      body.mightHaveTerminator() ? body.getTerminator() : nullptr);
  if (llvm::equal(body.getArgumentTypes(), expected) && end &&
      llvm::equal(end.getValues().getTypes(), ended))
    return success();
  return op->emitOpError() << "has a region '" << name << "' that takes ("
                           << body.getArgumentTypes() << "), expected ("
                           << expected << ") and attn.next of (" << ended
                           << ") (" << constraint << ")";
}

LogicalResult RecurrenceOp::verify() {
  Builder b(getContext());
  SmallVector<Type> expected(1 + getSizes().size(), b.getIndexType()), elements;
  for (Type start : getStarts().getTypes())
    elements.push_back(getElementTypeOrSelf(start));
  expected.append(elements);
  Block &body = getNext().front();
  auto end = dyn_cast_if_present<NextOp>(
      body.mightHaveTerminator() ? body.getTerminator() : nullptr);
  if (!llvm::equal(body.getArgumentTypes(), expected) || !end ||
      !llvm::equal(end.getValues().getTypes(), elements))
    return emitOpError() << "has a body that takes (" << body.getArgumentTypes()
                         << "), expected (" << expected
                         << ") and attn.next of (" << elements
                         << ") (recurrence.c1)";
  if (getHistories().size() != getStarts().size())
    return emitOpError() << "has " << getHistories().size() << " results for "
                         << getStarts().size() << " states (recurrence.c2)";
  for (auto [start, history] :
       llvm::zip(getStarts().getTypes(), getHistories().getTypes())) {
    auto old = cast<RankedTensorType>(start),
         all = cast<RankedTensorType>(history);
    if (old.getRank() != int64_t(getSizes().size()) ||
        all.getElementType() != old.getElementType() ||
        all.getRank() != old.getRank() + 1 ||
        all.getShape().drop_front() != old.getShape())
      return emitOpError() << "has the result " << all << " for " << old
                           << ", expected an axis more, the first, and "
                           << getSizes().size()
                           << " of the state (recurrence.c2)";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Definition
//===----------------------------------------------------------------------===//

/// Row \p number of a history of \p type.
static RowPlace rowAt(OpBuilder &b, RecurrenceOp op, RankedTensorType type,
                      OpFoldResult number) {
  RowPlace place;
  place.offsets.assign(type.getRank(), b.getIndexAttr(0));
  place.dropped.assign(type.getRank(), false);
  place.sizes.push_back(b.getIndexAttr(1));
  for (auto [axis, size] : llvm::enumerate(op.getSizes()))
    place.sizes.push_back(type.isDynamicDim(axis + 1)
                              ? OpFoldResult(size)
                              : b.getIndexAttr(type.getDimSize(axis + 1)));
  place.offsets[0] = number;
  place.dropped[0] = true;
  return place;
}

/// A history of \p result's type that begins with \p start.
static Value beginHistory(OpBuilder &b, RecurrenceOp op, Value start,
                          RankedTensorType type) {
  Location loc = op.getLoc();
  SmallVector<Value> dynamic;
  if (type.isDynamicDim(0))
    dynamic.push_back(op.getRows());
  for (auto [axis, size] : llvm::enumerate(op.getSizes()))
    if (type.isDynamicDim(axis + 1))
      dynamic.push_back(size);
  Value all = tensor::EmptyOp::create(b, loc, type, dynamic);
  return writeRow(b, loc, start, all, rowAt(b, op, type, b.getIndexAttr(0)));
}

ValueRange heed::attn::computeStep(OpBuilder &b, Location loc, Region &region,
                                   Value step, ValueRange taken,
                                   ValueRange outs) {
  Block &body = region.front();
  unsigned rank = cast<RankedTensorType>(outs.front().getType()).getRank();
  SmallVector<AffineMap> maps(taken.size() + outs.size(),
                              b.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, outs.getTypes(), taken, outs, maps, iterators,
             [&](OpBuilder &inner, Location, ValueRange in) {
               IRMapping map;
               map.map(body.getArgument(0), step);
               for (unsigned d = 0; d < rank; ++d)
                 map.map(body.getArgument(1 + d),
                         linalg::IndexOp::create(inner, loc, d).getResult());
               for (unsigned k = 0; k < taken.size(); ++k)
                 map.map(body.getArgument(1 + rank + k), in[k]);
               for (Operation &each : body.without_terminator())
                 inner.clone(each, map);
               SmallVector<Value> values;
               for (Value value :
                    cast<NextOp>(body.getTerminator()).getValues())
                 values.push_back(map.lookupOrDefault(value));
               linalg::YieldOp::create(inner, loc, values);
             })
      .getResults();
}

/// The states after step \p step, of those before it.
static ValueRange nextStates(OpBuilder &b, RecurrenceOp op, Value step,
                             ArrayRef<Value> states) {
  Location loc = op.getLoc();
  SmallVector<Value> outs;
  for (Value state : states) {
    auto type = cast<RankedTensorType>(state.getType());
    SmallVector<Value> dynamic;
    for (auto [axis, size] : llvm::enumerate(op.getSizes()))
      if (type.isDynamicDim(axis))
        dynamic.push_back(size);
    outs.push_back(tensor::EmptyOp::create(b, loc, type, dynamic));
  }
  return computeStep(b, loc, op.getNext(), step, states, outs);
}

FailureOr<SmallVector<Value>> RecurrenceOp::decomposeOperation(OpBuilder &b) {
  Location loc = getLoc();
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> inits;
  for (auto [start, result] : llvm::zip(getStarts(), getHistories()))
    inits.push_back(beginHistory(b, *this, start,
                                 cast<RankedTensorType>(result.getType())));
  Value steps = arith::SubIOp::create(b, loc, getRows(), one);
  auto loop = scf::ForOp::create(b, loc, zero, steps, one, inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  Value turn = loop.getInductionVar();
  Value step = arith::AddIOp::create(b, loc, getFrom(), turn);
  Value after = arith::AddIOp::create(b, loc, turn, one);
  auto place = [&](Value all, Value number) {
    return rowAt(b, *this, cast<RankedTensorType>(all.getType()), number);
  };
  SmallVector<Value> states, yields;
  for (auto [all, start] : llvm::zip(loop.getRegionIterArgs(), getStarts()))
    states.push_back(readRow(b, loc, all, place(all, turn),
                             cast<RankedTensorType>(start.getType())));
  for (auto [row, all] :
       llvm::zip(nextStates(b, *this, step, states), loop.getRegionIterArgs()))
    yields.push_back(writeRow(b, loc, row, all, place(all, after)));
  scf::YieldOp::create(b, loc, yields);
  return SmallVector<Value>(loop.getResults());
}
