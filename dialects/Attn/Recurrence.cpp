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

FailureOr<SmallVector<Value>> RecurrenceOp::decomposeOperation(OpBuilder &b) {
  Location loc = getLoc();
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> inits;
  for (auto [start, result] : llvm::zip(getStarts(), getHistories())) {
    auto type = cast<RankedTensorType>(result.getType());
    SmallVector<Value> dynamic;
    if (type.isDynamicDim(0))
      dynamic.push_back(getRows());
    for (auto [axis, size] : llvm::enumerate(getSizes()))
      if (type.isDynamicDim(axis + 1))
        dynamic.push_back(size);
    Value all = tensor::EmptyOp::create(b, loc, type, dynamic);
    inits.push_back(
        writeRow(b, loc, start, all, rowAt(b, *this, type, b.getIndexAttr(0))));
  }
  Value steps = arith::SubIOp::create(b, loc, getRows(), one);
  auto loop = scf::ForOp::create(b, loc, zero, steps, one, inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  Value turn = loop.getInductionVar();
  Value step = arith::AddIOp::create(b, loc, getFrom(), turn);
  Value after = arith::AddIOp::create(b, loc, turn, one);
  unsigned rank = getSizes().size();
  AffineMap identity = b.getMultiDimIdentityMap(rank);
  SmallVector<Value> rows, outs;
  SmallVector<Type> types;
  for (auto [all, start] : llvm::zip(loop.getRegionIterArgs(), getStarts())) {
    auto type = cast<RankedTensorType>(start.getType());
    rows.push_back(readRow(
        b, loc, all,
        rowAt(b, *this, cast<RankedTensorType>(all.getType()), turn), type));
    SmallVector<Value> dynamic;
    for (auto [axis, size] : llvm::enumerate(getSizes()))
      if (type.isDynamicDim(axis))
        dynamic.push_back(size);
    outs.push_back(tensor::EmptyOp::create(b, loc, type, dynamic));
    types.push_back(type);
  }
  Block &body = getNext().front();
  auto next = linalg::GenericOp::create(
      b, loc, types, rows, outs,
      SmallVector<AffineMap>(2 * rows.size(), identity),
      SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
      [&](OpBuilder &inner, Location, ValueRange in) {
        IRMapping map;
        map.map(body.getArgument(0), step);
        for (unsigned d = 0; d < rank; ++d)
          map.map(body.getArgument(1 + d),
                  linalg::IndexOp::create(inner, loc, d).getResult());
        for (unsigned k = 0; k < rows.size(); ++k)
          map.map(body.getArgument(1 + rank + k), in[k]);
        for (Operation &op : body.without_terminator())
          inner.clone(op, map);
        SmallVector<Value> values;
        for (Value value : cast<NextOp>(body.getTerminator()).getValues())
          values.push_back(map.lookupOrDefault(value));
        linalg::YieldOp::create(inner, loc, values);
      });
  SmallVector<Value> yields;
  for (auto [row, all] : llvm::zip(next.getResults(), loop.getRegionIterArgs()))
    yields.push_back(writeRow(
        b, loc, row, all,
        rowAt(b, *this, cast<RankedTensorType>(all.getType()), after)));
  scf::YieldOp::create(b, loc, yields);
  return SmallVector<Value>(loop.getResults());
}
