//===- TriangularSolve.cpp - attn.triangular_solve: checks, definition ----===//
#include "dialects/Attn/Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace heed::attn;

LogicalResult TriangularSolveOp::verify() {
  RankedTensorType matrix = getMatrix().getType(), right = getRight().getType();
  int64_t rank = matrix.getRank();
  auto fit = [](int64_t a, int64_t b) {
    return a == b || ShapedType::isDynamic(a) || ShapedType::isDynamic(b);
  };
  bool fits = rank >= 2 && right.getRank() >= rank - 1 &&
              fit(matrix.getDimSize(rank - 1), matrix.getDimSize(rank - 2));
  for (int64_t axis = 0; fits && axis < rank - 1; ++axis)
    fits = fit(matrix.getDimSize(axis), right.getDimSize(axis));
  if (fits)
    return success();
  return emitOpError() << "has the matrix " << matrix << " for " << right
                       << ", expected its axes up to the steps, and the steps "
                          "again (triangular_solve.c1)";
}

//===----------------------------------------------------------------------===//
// Definition
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>>
TriangularSolveOp::decomposeOperation(OpBuilder &b) {
  Location loc = getLoc();
  unsigned axis = stepAxis(), rank = getRight().getType().getRank();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, getRight());
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  auto part = [&](Value tensor, ArrayRef<OpFoldResult> offsets,
                  ArrayRef<OpFoldResult> sizes) -> Value {
    SmallVector<OpFoldResult> strides(sizes.size(), one);
    return tensor::ExtractSliceOp::create(b, loc, tensor, offsets, sizes,
                                          strides);
  };
  // Loops: batch axes, the step (one), the other axes, the steps before.
  SmallVector<AffineExpr> matrixAt, seenAt, rowAt;
  for (unsigned d = 0; d < rank; ++d) {
    AffineExpr dim = b.getAffineDimExpr(d);
    rowAt.push_back(dim);
    if (d <= axis)
      matrixAt.push_back(dim);
    seenAt.push_back(d == axis ? b.getAffineDimExpr(rank) : dim);
  }
  matrixAt.push_back(b.getAffineDimExpr(rank));
  auto map = [&](ArrayRef<AffineExpr> at) {
    return AffineMap::get(rank + 1, 0, at, getContext());
  };
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  auto value = [&](OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(b, loc, size);
  };
  Value low = value(zero), high = value(sizes[axis]), step = value(one);
  auto loop = scf::ForOp::create(b, loc, low, high, step, getRight());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  OpFoldResult t = loop.getInductionVar();
  SmallVector<OpFoldResult> first(rank, zero), rowSizes(sizes), before(sizes),
      own(rank, zero);
  rowSizes[axis] = one;
  before[axis] = own[axis] = t;
  SmallVector<OpFoldResult> matrixOwn(axis, zero),
      matrixSizes(ArrayRef(sizes).take_front(axis));
  matrixOwn.append({t, zero});
  matrixSizes.append({one, t});
  Value all = loop.getRegionIterArgs()[0];
  Value right = part(getRight(), own, rowSizes);
  auto row = linalg::GenericOp::create(
      b, loc, right.getType(),
      {part(getMatrix(), matrixOwn, matrixSizes), part(all, first, before)},
      right, {map(matrixAt), map(seenAt), map(rowAt)}, iterators,
      [](OpBuilder &b, Location loc, ValueRange in) {
        Value product = arith::MulFOp::create(b, loc, in[0], in[1]);
        linalg::YieldOp::create(
            b, loc, arith::SubFOp::create(b, loc, in[2], product).getResult());
      });
  SmallVector<OpFoldResult> strides(rank, one);
  Value next = tensor::InsertSliceOp::create(b, loc, row.getResult(0), all, own,
                                             rowSizes, strides);
  scf::YieldOp::create(b, loc, next);
  return SmallVector<Value>{loop.getResult(0)};
}
