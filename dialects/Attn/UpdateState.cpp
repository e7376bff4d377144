//===- UpdateState.cpp - attn.update_state: checks and definition ---------===//
#include "dialects/Attn/Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace heed::attn;

/// The constraints of both ops, which have the same operands.
template <typename OpTy> static LogicalResult checkPlaces(OpTy op) {
  auto values = cast<ShapedType>(op.getValues().getType());
  auto state = cast<ShapedType>(op.getState().getType());
  int64_t numPositions = op.getPositions().size();
  auto fail = [&](const Twine &message, int constraint) {
    return op.emitOpError()
           << message << " (" << OpTy::getOperationName().drop_front(5) << ".c"
           << constraint << ")";
  };
  if (int64_t(op.getAxes().size()) != state.getRank())
    return fail("expected an axis for each of the state", 1);
  for (int64_t axis : op.getAxes())
    if (axis >= values.getRank() || axis < -numPositions)
      return fail("axis " + Twine(axis) +
                      " is none of the values and of the positions",
                  1);
  if (values.getElementType() != state.getElementType())
    return fail("expected values of the state's element type", 2);
  if (int64_t(op.getMaps().size()) != numPositions)
    return fail("expected a map for each position", 3);
  for (auto [position, attr] : llvm::zip(op.getPositions(), op.getMaps())) {
    AffineMap map = cast<AffineMapAttr>(attr).getValue();
    auto shaped = dyn_cast<ShapedType>(position.getType());
    int64_t rank = shaped ? shaped.getRank() : 0;
    if (map.getNumDims() != unsigned(values.getRank()) ||
        map.getNumResults() != unsigned(rank) || map.getNumSymbols() ||
        !map.isProjectedPermutation())
      return fail("expected a map from the axes of the values to those of the "
                  "position",
                  3);
    if (shaped && !shaped.getElementType().isInteger(64))
      return fail("expected positions of i64", 4);
  }
  return success();
}

LogicalResult UpdateStateOp::verify() { return checkPlaces(*this); }
LogicalResult WriteStateOp::verify() { return checkPlaces(*this); }

/// Loops over the values, the innermost over their last axis: a position is
/// read where the last of its indices is known.
FailureOr<SmallVector<Value>> UpdateStateOp::decomposeOperation(OpBuilder &b) {
  Location loc = getLoc();
  OpBuilder::InsertionGuard guard(b);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  int64_t rank = cast<RankedTensorType>(getValues().getType()).getRank();
  Value zero = constant(0), one = constant(1);
  SmallVector<Value> extents, at, positions(getPositions().size());
  for (int64_t axis = 0; axis < rank; ++axis)
    extents.push_back(tensor::DimOp::create(b, loc, getValues(), axis));
  auto readPositions = [&] {
    for (auto [k, given] : llvm::enumerate(getPositions())) {
      AffineMap map = cast<AffineMapAttr>(getMaps()[k]).getValue();
      SmallVector<Value> where;
      for (AffineExpr expr : map.getResults())
        if (unsigned dim = cast<AffineDimExpr>(expr).getPosition();
            dim < at.size())
          where.push_back(at[dim]);
      if (positions[k] || where.size() != map.getNumResults())
        continue;
      positions[k] = given;
      if (!given.getType().isIndex())
        positions[k] = arith::IndexCastOp::create(
            b, loc, b.getIndexType(),
            tensor::ExtractOp::create(b, loc, given, where));
    }
  };
  SmallVector<scf::ForOp> loops;
  Value state = getState();
  readPositions();
  for (int64_t axis = 0; axis < rank; ++axis) {
    auto loop = scf::ForOp::create(b, loc, zero, extents[axis], one, state);
    b.setInsertionPointToStart(loop.getBody());
    at.push_back(loop.getInductionVar());
    state = loop.getRegionIterArg(0);
    loops.push_back(loop);
    readPositions();
  }
  SmallVector<Value> place;
  for (int64_t axis : getAxes())
    place.push_back(axis >= 0 ? at[axis] : positions[-1 - axis]);
  Value value = tensor::ExtractOp::create(b, loc, getValues(), at);
  Value changed = tensor::InsertOp::create(b, loc, value, state, place);
  for (scf::ForOp loop : llvm::reverse(loops)) {
    b.setInsertionPointToEnd(loop.getBody());
    scf::YieldOp::create(b, loc, changed);
    changed = loop.getResult(0);
  }
  return SmallVector<Value>{changed};
}
