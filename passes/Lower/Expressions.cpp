//===- Expressions.cpp - scalar bodies as expressions of a pipeline -------===//
#include "passes/Lower/Expressions.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AffineExprVisitor.h"

using namespace mlir;
using namespace heed;

Type heed::pipelineType(Type type) {
  return type.isIndex() ? IntegerType::get(type.getContext(), 32) : type;
}

namespace {

struct AffineExpander : AffineExprVisitor<AffineExpander, Value> {
  AffineExpander(IndexMath &math, ArrayRef<Value> dims, ArrayRef<Value> symbols)
      : math(math), dims(dims), symbols(symbols) {}

  Value visitAddExpr(AffineBinaryOpExpr e) {
    return math.add(visit(e.getLHS()), visit(e.getRHS()));
  }
  Value visitMulExpr(AffineBinaryOpExpr e) {
    return math.mul(visit(e.getLHS()), visit(e.getRHS()));
  }
  Value visitFloorDivExpr(AffineBinaryOpExpr e) {
    return math.floorDiv(visit(e.getLHS()), visit(e.getRHS()));
  }
  Value visitCeilDivExpr(AffineBinaryOpExpr e) {
    return math.ceilDiv(visit(e.getLHS()), visit(e.getRHS()));
  }
  Value visitModExpr(AffineBinaryOpExpr e) {
    // Not spelled with a division: Halide bounds its own remainder exactly.
    return math.mod(visit(e.getLHS()), visit(e.getRHS()));
  }
  Value visitConstantExpr(AffineConstantExpr e) {
    return math.constant(e.getValue());
  }
  Value visitDimExpr(AffineDimExpr e) { return dims[e.getPosition()]; }
  Value visitSymbolExpr(AffineSymbolExpr e) { return symbols[e.getPosition()]; }

  IndexMath &math;
  ArrayRef<Value> dims, symbols;
};

/// Whether interval arithmetic over the loops gives the exact range of \p
/// value: sums of different loops, scaled, divided and cut by what is no loop.
/// \p used collects the loops.
bool isExactlyBounded(Value value, llvm::SmallPtrSetImpl<Value> &used) {
  // Arguments are loops. A body that is being built has no parent yet.
  if (isa<BlockArgument>(value))
    return used.insert(value).second;
  Operation *def = value.getDefiningOp();
  if (isa_and_nonnull<halide::PipelineOp>(def->getParentOp()) ||
      isa<arith::ConstantOp>(def))
    return true;
  if (isa<arith::ExtSIOp, arith::TruncIOp, halide::LikelyOp>(def))
    return isExactlyBounded(def->getOperand(0), used);
  if (isa<arith::AddIOp, arith::SubIOp>(def))
    return isExactlyBounded(def->getOperand(0), used) &&
           isExactlyBounded(def->getOperand(1), used);
  if (isa<arith::MulIOp, arith::FloorDivSIOp, arith::MinSIOp>(def)) {
    llvm::SmallPtrSet<Value, 4> right;
    return isExactlyBounded(def->getOperand(0), used) &&
           isExactlyBounded(def->getOperand(1), right) && right.empty();
  }
  return false;
}

class BodyTranslator {
public:
  BodyTranslator(OpBuilder &b, IRMapping &map, ArrayRef<Value> loops,
                 TensorReads &tensors)
      : b(b), map(map), loops(loops), tensors(tensors) {}

  LogicalResult block(Block &block, bool guarded) {
    for (Operation &op : block.without_terminator())
      if (failed(translate(&op, guarded)))
        return failure();
    return success();
  }

  LogicalResult translate(Operation *op, bool guarded);

private:
  /// The value that stands for \p value in the pipeline.
  Value at(Value value) { return map.lookupOrDefault(value); }

  LogicalResult extract(tensor::ExtractOp op, bool guarded);
  Value cast(Location loc, Value value, Type to, bool isUnsigned);
  Value castIndex(Operation *op);
  LogicalResult clone(Operation *op);

  OpBuilder &b;
  IRMapping &map;
  ArrayRef<Value> loops;
  TensorReads &tensors;
};

Value BodyTranslator::cast(Location loc, Value value, Type to,
                           bool isUnsigned) {
  unsigned from = value.getType().getIntOrFloatBitWidth();
  unsigned width = to.getIntOrFloatBitWidth();
  if (from == width)
    return value;
  if (from > width)
    return arith::TruncIOp::create(b, loc, to, value);
  if (isUnsigned)
    return arith::ExtUIOp::create(b, loc, to, value);
  return arith::ExtSIOp::create(b, loc, to, value);
}

LogicalResult BodyTranslator::extract(tensor::ExtractOp op, bool guarded) {
  Location loc = op.getLoc();
  SmallVector<Value> coordinates;
  llvm::SmallPtrSet<Value, 4> used;
  for (auto [axis, index] : llvm::enumerate(op.getIndices())) {
    Value coordinate = at(index);
    bool plain = isa<BlockArgument>(coordinate) && !guarded;
    llvm::SmallPtrSet<Value, 4> mine;
    if (!plain && (guarded || !isExactlyBounded(coordinate, mine))) {
      FailureOr<Extent> extent = tensors.extent(b, op.getTensor(), axis);
      if (failed(extent))
        return failure();
      IndexMath math(b, loc, tensors.largest);
      if (Value narrow = IndexMath::asNarrow(coordinate))
        coordinate = narrow;
      bool isWide = coordinate.getType().isInteger(64);
      auto like = [&](Value x) { return isWide ? math.wide(x) : x; };
      // In this order: a tensor without elements is read at 0, never below its
      // first element.
      Value one = constantI32(b, loc, 1), zero = constantI32(b, loc, 0);
      Value last = arith::SubIOp::create(b, loc, extent->value, one);
      if (mutated("kernel-algorithm.read-stops-early"))
        last = arith::SubIOp::create(b, loc, last, one);
      coordinate = arith::MinSIOp::create(b, loc, coordinate, like(last));
      coordinate = arith::MaxSIOp::create(b, loc, coordinate, like(zero));
    }
    coordinate = IndexMath::narrow(b, loc, coordinate);
    coordinates.push_back(coordinate);
  }
  FailureOr<Value> read = tensors.read(b, loc, op.getTensor(), coordinates);
  if (failed(read))
    return failure();
  map.map(op.getResult(), *read);
  return success();
}

/// Long: one op after the other.
LogicalResult BodyTranslator::translate(Operation *op, bool guarded) {
  Location loc = op->getLoc();
  if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    map.map(index.getResult(), loops[index.getDim()]);
    return success();
  }
  if (auto extractOp = dyn_cast<tensor::ExtractOp>(op))
    return extract(extractOp, guarded);
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    std::optional<int64_t> axis = dim.getConstantIndex();
    if (!axis)
      return op->emitError("a kernel needs a constant axis here");
    FailureOr<Extent> extent = tensors.extent(b, dim.getSource(), *axis);
    if (failed(extent))
      return failure();
    map.map(dim.getResult(), extent->value);
    return success();
  }
  if (auto ifOp = dyn_cast<scf::IfOp>(op)) {
    if (failed(block(ifOp.getThenRegion().front(), true)))
      return failure();
    if (ifOp.getNumResults() == 0)
      return success();
    if (failed(block(ifOp.getElseRegion().front(), true)))
      return failure();
    for (auto [result, yes, no] :
         llvm::zip(ifOp.getResults(), ifOp.thenYield().getOperands(),
                   ifOp.elseYield().getOperands())) {
      SmallVector<Value> operands{at(ifOp.getCondition()), at(yes), at(no)};
      bool isData = false;
      IndexMath math(b, loc, tensors.largest);
      if (result.getType().isIndex())
        isData = math.unify(arith::SelectOp::getOperationName(), operands);
      if (mutated("kernel-algorithm.negate-if"))
        std::swap(operands[1], operands[2]);
      Value chosen = arith::SelectOp::create(b, loc, operands[0], operands[1],
                                             operands[2]);
      map.map(result, isData ? math.wide(chosen) : chosen);
    }
    return success();
  }
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    SmallVector<Value> operands;
    for (Value operand : apply.getOperands())
      operands.push_back(at(operand));
    AffineMap affine = apply.getAffineMap();
    IndexMath math(b, loc, tensors.largest);
    map.map(apply.getResult(),
            expandAffine(math, affine.getResult(0),
                         ArrayRef(operands).take_front(affine.getNumDims()),
                         ArrayRef(operands).drop_front(affine.getNumDims())));
    return success();
  }
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)) {
    map.map(op->getResult(0), castIndex(op));
    return success();
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto integer = dyn_cast<IntegerAttr>(constant.getValue());
    if (integer && constant.getType().isIndex())
      map.map(constant.getResult(),
              IndexMath(b, loc, tensors.largest).constant(integer.getInt()));
    else
      map.map(constant.getResult(), b.clone(*op)->getResult(0));
    return success();
  }
  Dialect *dialect = op->getDialect();
  if (op->getNumRegions() ||
      !isa<arith::ArithDialect, math::MathDialect>(dialect))
    return op->emitError("'")
           << op->getName() << "' has no translation inside a kernel";
  return clone(op);
}

/// Integers become indices as i64, since they may be anything.
Value BodyTranslator::castIndex(Operation *op) {
  Value value = at(op->getOperand(0));
  Type to = op->getResult(0).getType();
  if (!to.isIndex()) {
    if (Value narrow = IndexMath::asNarrow(value);
        narrow && to.getIntOrFloatBitWidth() <= 32)
      value = narrow;
    return cast(op->getLoc(), value, to, isa<arith::IndexCastUIOp>(op));
  }
  return cast(op->getLoc(), value, b.getI64Type(),
              isa<arith::IndexCastUIOp>(op));
}

/// Truncating division of an index that is not negative is the floor, of which
/// Halide knows more: that c // 64 is one number for the lanes of a vector.
static Value floorOf(IndexMath &math, Operation *op, ArrayRef<Value> operands) {
  if (!isa<arith::DivSIOp, arith::RemSIOp>(op) ||
      !op->getResult(0).getType().isIndex() ||
      getConstantIntValue(operands[1]).value_or(0) <= 0 ||
      !IndexMath::isNonNegative(operands[0]))
    return {};
  return isa<arith::DivSIOp>(op) ? math.floorDiv(operands[0], operands[1])
                                 : math.mod(operands[0], operands[1]);
}

/// What computes with indices does so in a width that holds the result.
LogicalResult BodyTranslator::clone(Operation *op) {
  OperationState state(op->getLoc(), op->getName());
  for (Value operand : op->getOperands())
    state.operands.push_back(at(operand));
  IndexMath math(b, op->getLoc(), tensors.largest);
  if (Value floor = floorOf(math, op, state.operands)) {
    map.map(op->getResult(0), floor);
    return success();
  }
  bool isIndex = llvm::any_of(op->getOperandTypes(),
                              [](Type type) { return type.isIndex(); });
  bool isData =
      isIndex && math.unify(op->getName().getStringRef(), state.operands);
  for (Type type : op->getResultTypes())
    state.types.push_back(type.isIndex() ? state.operands.back().getType()
                                         : pipelineType(type));
  state.attributes = op->getAttrs();
  state.propertiesAttr = op->getPropertiesAsAttribute();
  Operation *clone = b.create(state);
  for (auto [from, to] : llvm::zip(op->getResults(), clone->getResults())) {
    bool extend = isData && from.getType().isIndex();
    map.map(from, extend ? math.wide(to) : to);
  }
  return success();
}

} // namespace

Value heed::expandAffine(IndexMath &math, AffineExpr expr, ArrayRef<Value> dims,
                         ArrayRef<Value> symbols) {
  return AffineExpander(math, dims, symbols).visit(expr);
}

LogicalResult heed::translateBody(OpBuilder &b, Block &block, IRMapping &map,
                                  ArrayRef<Value> loops, TensorReads &tensors,
                                  bool guarded) {
  return BodyTranslator(b, map, loops, tensors).block(block, guarded);
}

LogicalResult heed::translateOp(OpBuilder &b, Operation *op, IRMapping &map,
                                ArrayRef<Value> loops, TensorReads &tensors) {
  return BodyTranslator(b, map, loops, tensors).translate(op, false);
}
