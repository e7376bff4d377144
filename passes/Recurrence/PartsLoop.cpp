//===- PartsLoop.cpp - steps taken some at once ---------------------------===//
#include "passes/Recurrence/PartsLoop.h"
#include "passes/Algebra/TensorOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace heed {

scf::ForOp loopOverParts(OpBuilder &b, Location loc, Value low, Value high,
                         OpFoldResult size, ValueRange starts,
                         WritePart write) {
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
  if (!from || !to || !known || (*to - *from) % *known != 0)
    length = arith::MinSIOp::create(b, loc, stride,
                                    arith::SubIOp::create(b, loc, high, first))
                 .getResult();
  SmallVector<Value> behind = write(loop.getRegionIterArgs(), first, length);
  for (auto [value, start] : llvm::zip_equal(behind, starts))
    value = castTo(b, value, start.getType());
  yield.getResultsMutable().assign(behind);
  return loop;
}

} // namespace heed
