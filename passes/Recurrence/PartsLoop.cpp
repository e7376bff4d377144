//===- PartsLoop.cpp - steps taken some at once ---------------------------===//
#include "passes/Recurrence/PartsLoop.h"
#include "passes/Algebra/TensorOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace heed {

/// A loop over parts, which all have \p size steps if they are \p whole.
static scf::ForOp loopOver(OpBuilder &b, Location loc, Value low, Value high,
                           OpFoldResult size, ValueRange starts,
                           WritePart write, bool whole) {
  Value stride = getValueOrCreateConstantIndexOp(b, loc, size);
  auto loop = scf::ForOp::create(b, loc, low, high, stride, starts);
  OpBuilder::InsertionGuard guard(b);
  // What is carried has the extents that it starts with, as is seen where it is
  // yielded.
  b.setInsertionPointToEnd(loop.getBody());
  auto yield = scf::YieldOp::create(b, loc, loop.getRegionIterArgs());
  b.setInsertionPoint(yield);
  Value first = loop.getInductionVar();
  std::optional<int64_t> from = getConstantIntValue(low),
                         to = getConstantIntValue(high),
                         known = getConstantIntValue(size);
  OpFoldResult length = size;
  if (!whole && (!from || !to || !known || (*to - *from) % *known != 0))
    length = arith::MinSIOp::create(b, loc, stride,
                                    arith::SubIOp::create(b, loc, high, first))
                 .getResult();
  SmallVector<Value> behind = write(loop.getRegionIterArgs(), first, length);
  for (auto [value, start] : llvm::zip_equal(behind, starts))
    value = castTo(b, value, start.getType());
  yield.getResultsMutable().assign(behind);
  return loop;
}

scf::ForOp loopOverParts(OpBuilder &b, Location loc, Value low, Value high,
                         OpFoldResult size, ValueRange starts,
                         WritePart write) {
  return loopOver(b, loc, low, high, size, starts, write, /*whole=*/false);
}

SmallVector<Value> loopOverWholeParts(OpBuilder &b, Location loc, Value low,
                                      Value high, int64_t size,
                                      ValueRange starts, WritePart write,
                                      bool oneByOne) {
  OpFoldResult part = b.getIndexAttr(size);
  Value end = high;
  std::optional<int64_t> from = getConstantIntValue(low),
                         to = getConstantIntValue(high);
  if (from && to) {
    end = arith::ConstantIndexOp::create(
        b, loc, *to - std::max<int64_t>(*to - *from, 0) % size);
  } else {
    // Steps from low on, none if high is below it.
    Value stride = arith::ConstantIndexOp::create(b, loc, size);
    Value count =
        arith::MaxSIOp::create(b, loc, arith::SubIOp::create(b, loc, high, low),
                               arith::ConstantIndexOp::create(b, loc, 0));
    end =
        arith::SubIOp::create(b, loc, arith::AddIOp::create(b, loc, low, count),
                              arith::RemSIOp::create(b, loc, count, stride));
  }
  scf::ForOp loop =
      loopOver(b, loc, low, end, part, starts, write, /*whole=*/true);
  if (from && to && (*to - *from) % size == 0)
    return SmallVector<Value>(loop.getResults());
  return SmallVector<Value>(
      loopOver(b, loc, end, high, oneByOne ? b.getIndexAttr(1) : part,
               loop.getResults(), write, /*whole=*/oneByOne)
          .getResults());
}

} // namespace heed
