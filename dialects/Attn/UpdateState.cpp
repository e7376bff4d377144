//===- UpdateState.cpp - attn.update_state: checks and definition ---------===//
#include "dialects/Attn/Dialect.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
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
  SmallVector<Value> mapped(op.getPositions());
  if (op.getMask())
    mapped.push_back(op.getMask());
  if (op.getMaps().size() != mapped.size())
    return fail("expected a map for each position and for where", 3);
  for (auto [position, attr] : llvm::zip(mapped, op.getMaps())) {
    AffineMap map = cast<AffineMapAttr>(attr).getValue();
    auto shaped = dyn_cast<ShapedType>(position.getType());
    int64_t rank = shaped ? shaped.getRank() : 0;
    if (map.getNumDims() != unsigned(values.getRank()) ||
        map.getNumResults() != unsigned(rank) || map.getNumSymbols() ||
        !map.isProjectedPermutation())
      return fail("expected a map from the axes of the values to those of the "
                  "position",
                  3);
    if (shaped && position != op.getMask() &&
        !shaped.getElementType().isInteger(64))
      return fail("expected positions of i64", 4);
  }
  return success();
}

LogicalResult UpdateStateOp::verify() { return checkPlaces(*this); }
LogicalResult WriteStateOp::verify() { return checkPlaces(*this); }

std::string UpdateStateOp::distinctMessage() {
  auto name = (*this)->getAttrOfType<StringAttr>(kNameAttr);
  return format("two elements of an update of '{}' go to one place",
                name ? name.getValue() : "a state");
}

/// A tensor of false like \p state.
static Value nothingWritten(OpBuilder &b, Location loc, Value state) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, state);
  Value empty = tensor::EmptyOp::create(b, loc, sizes, b.getI1Type());
  Value no = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
  return linalg::FillOp::create(b, loc, no, empty).getResult(0);
}

/// Loops over the values, the innermost over their last axis: a position is
/// read where the last of its indices is known. Where distinct places are
/// checked a tensor says which have been written.
/// Long: from the loops' heads to their ends.
FailureOr<SmallVector<Value>> UpdateStateOp::decomposeOperation(OpBuilder &b) {
  Location loc = getLoc();
  OpBuilder::InsertionGuard guard(b);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  int64_t rank = cast<RankedTensorType>(getValues().getType()).getRank();
  Value zero = constant(0), one = constant(1);
  SmallVector<Value> extents, at, given(getPositions());
  if (getMask())
    given.push_back(getMask());
  SmallVector<Value> known(given.size());
  for (int64_t axis = 0; axis < rank; ++axis)
    extents.push_back(tensor::DimOp::create(b, loc, getValues(), axis));
  auto readPositions = [&] {
    for (auto [k, from] : llvm::enumerate(given)) {
      AffineMap map = cast<AffineMapAttr>(getMaps()[k]).getValue();
      SmallVector<Value> where;
      for (AffineExpr expr : map.getResults())
        if (unsigned dim = cast<AffineDimExpr>(expr).getPosition();
            dim < at.size())
          where.push_back(at[dim]);
      if (known[k] || where.size() != map.getNumResults())
        continue;
      known[k] = from;
      if (from.getType().isIndex())
        continue;
      known[k] = tensor::ExtractOp::create(b, loc, from, where);
      if (from != getMask())
        known[k] =
            arith::IndexCastOp::create(b, loc, b.getIndexType(), known[k]);
    }
  };
  SmallVector<scf::ForOp> loops;
  SmallVector<Value> carried{getState()};
  if (getCheckDistinct())
    carried.push_back(nothingWritten(b, loc, getState()));
  readPositions();
  for (int64_t axis = 0; axis < rank; ++axis) {
    auto loop = scf::ForOp::create(b, loc, zero, extents[axis], one, carried);
    b.setInsertionPointToStart(loop.getBody());
    at.push_back(loop.getInductionVar());
    carried.assign(loop.getRegionIterArgs().begin(),
                   loop.getRegionIterArgs().end());
    loops.push_back(loop);
    readPositions();
  }
  SmallVector<Value> place;
  for (int64_t axis : getAxes())
    place.push_back(axis >= 0 ? at[axis] : known[-1 - axis]);
  auto write = [&](OpBuilder &b) {
    SmallVector<Value> changed;
    Value value = tensor::ExtractOp::create(b, loc, getValues(), at);
    changed.push_back(
        tensor::InsertOp::create(b, loc, value, carried[0], place));
    if (!getCheckDistinct())
      return changed;
    Value yes = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
    Value isFree = arith::XOrIOp::create(
        b, loc, tensor::ExtractOp::create(b, loc, carried[1], place), yes);
    auto check =
        RequireOp::create(b, loc, isFree, distinctMessage(), ValueRange());
    check->setAttr(kOfDataAttr, b.getUnitAttr());
    changed.push_back(tensor::InsertOp::create(b, loc, yes, carried[1], place));
    return changed;
  };
  SmallVector<Value> changed;
  if (getMask()) {
    auto choice = scf::IfOp::create(b, loc, TypeRange(carried), known.back(),
                                    /*withElseRegion=*/true);
    OpBuilder then = choice.getThenBodyBuilder();
    scf::YieldOp::create(then, loc, write(then));
    OpBuilder otherwise = choice.getElseBodyBuilder();
    scf::YieldOp::create(otherwise, loc, carried);
    changed.assign(choice.getResults().begin(), choice.getResults().end());
  } else {
    changed = write(b);
  }
  for (scf::ForOp loop : llvm::reverse(loops)) {
    b.setInsertionPointToEnd(loop.getBody());
    scf::YieldOp::create(b, loc, changed);
    changed.assign(loop.getResults().begin(), loop.getResults().end());
  }
  return SmallVector<Value>{changed.front()};
}
