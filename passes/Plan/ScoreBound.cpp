//===- ScoreBound.cpp - how large the scores of an attention may be -------===//
#include "passes/Plan/ScoreBound.h"
#include "passes/Masks/MaskBounds.h"
#include "passes/Mutation.h"

#include "dialects/Attn/Normaliser.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;
using attn::DimKind;

namespace {

/// Bounds of the values of a score region, each written once.
class ScoreBound {
public:
  ScoreBound(OpBuilder &b, attn::AttentionLike op, ArrayRef<Value> terms,
             function_ref<Value(Value)> outside)
      : b(b), loc(op->getLoc()), score(op.getScore()), outside(outside) {
    auto arguments = score.front().getArguments().take_back(terms.size());
    for (auto [argument, term] : llvm::zip_equal(arguments, terms))
      known[argument] = term;
  }

  Value of(Value value) {
    Value &bound = known[value];
    if (bound)
      return bound;
    Value found = written(value);
    known[value] = found;
    return found;
  }

private:
  Value written(Value value);
  /// Of both operands, combined.
  template <typename Op> Value both(Operation *op) {
    Value x = of(op->getOperand(0)), y = x ? of(op->getOperand(1)) : Value();
    return y ? Op::create(b, loc, x, y).getResult() : Value();
  }

  OpBuilder &b;
  Location loc;
  Region &score;
  function_ref<Value(Value)> outside;
  DenseMap<Value, Value> known;
};

} // namespace

Value ScoreBound::written(Value value) {
  if (!value.getType().isF32())
    return {};
  FloatAttr constant;
  if (matchPattern(value, m_Constant(&constant))) {
    APFloat size = constant.getValue();
    if (size.isNegative() && !mutated("score-bound.keep-sign"))
      size.clearSign();
    return arith::ConstantOp::create(b, loc,
                                     FloatAttr::get(b.getF32Type(), size));
  }
  if (!score.isAncestor(value.getParentRegion()))
    return math::AbsFOp::create(b, loc, outside(value));
  Operation *op = value.getDefiningOp();
  if (!op || op->getParentRegion() != &score)
    return {};
  if (isa<arith::MulFOp>(op))
    return mutated("score-bound.first-factor") ? of(op->getOperand(0))
                                               : both<arith::MulFOp>(op);
  if (isa<arith::AddFOp, arith::SubFOp>(op))
    return mutated("score-bound.larger-of-a-sum") ? both<arith::MaximumFOp>(op)
                                                  : both<arith::AddFOp>(op);
  if (isa<arith::MaximumFOp, arith::MinimumFOp>(op))
    return both<arith::MaximumFOp>(op);
  if (isa<arith::NegFOp, math::AbsFOp>(op))
    return of(op->getOperand(0));
  if (isa<arith::DivFOp>(op)) {
    // By a number that is one for all scores: its bound is its size.
    Value divisor = op->getOperand(1);
    bool fixed = matchPattern(divisor, m_Constant(&constant)) ||
                 !score.isAncestor(divisor.getParentRegion());
    Value x = fixed ? of(op->getOperand(0)) : Value();
    return x ? arith::DivFOp::create(b, loc, x, of(divisor)).getResult()
             : Value();
  }
  if (isa<math::TanhOp>(op)) {
    Value x = of(op->getOperand(0));
    Value one = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(1));
    return x ? arith::MinimumFOp::create(b, loc, x, one).getResult() : Value();
  }
  return {};
}

Value heed::boundOfScore(OpBuilder &b, attn::AttentionLike op,
                         ArrayRef<Value> terms,
                         function_ref<Value(Value)> outside) {
  return ScoreBound(b, op, terms, outside)
      .of(op.getScore().front().getTerminator()->getOperand(0));
}

/// Whether an operand has rows, which lie dense along its last axis, loop dim
/// \p dim; and no axis is an offset.
static bool hasDenseRows(attn::AttentionLike op, AffineMap map, unsigned dim) {
  return map.getNumResults() > 1 &&
         map.getResults().back() == getAffineDimExpr(dim, op->getContext()) &&
         llvm::none_of(map.getResults(), [&](AffineExpr expr) {
           return op.offsetSign(expr).has_value();
         });
}

/// Whether no query leaves out the first keys: a window's rows may be shorter
/// than what it takes to look for a bound.
static bool seesFirstKeys(attn::AttentionLike op) {
  if (op.getWhere().empty())
    return true;
  FailureOr<MaskBounds> mask = readMask(op);
  return succeeded(mask) && !mask->needsTables() && mask->reach.size() == 1 &&
         Exprs::isConstantInt(mask->reach[0].low, 0);
}

bool heed::hasScoreBound(attn::AttentionLike op) {
  const attn::Normaliser &normaliser = attn::Normaliser::of(op);
  if (!normaliser.isShiftable || !op.isDivided() || !op.getWeight().empty())
    return false;
  if (op.numDims(DimKind::Value) != 1 || op.getValues().size() != 1 ||
      !hasDenseRows(op, op.valueMap(0), op.firstDim(DimKind::Value)))
    return false;
  for (unsigned term = 0; term < op.numTerms(); ++term) {
    SmallVector<unsigned> contract = op.contractDims(term);
    SmallVector<AffineMap> maps = op.maps(term);
    if (!op.pair(term).empty() || maps.size() != 2 || contract.size() != 1 ||
        llvm::any_of(maps, [&](AffineMap map) {
          return !hasDenseRows(op, map, contract[0]);
        }))
      return false;
  }
  // Tried where nobody sees it.
  Block block;
  OpBuilder b(op->getContext());
  b.setInsertionPointToEnd(&block);
  auto number = [&](Value = {}) -> Value {
    return block.addArgument(b.getF32Type(), op->getLoc());
  };
  SmallVector<Value> terms;
  for (unsigned term = 0; term < op.numTerms(); ++term)
    terms.push_back(number());
  return boundOfScore(b, op, terms, number) != nullptr;
}

bool heed::gainsByScoreBound(attn::AttentionLike op) {
  // Its pipelines take as long to compile as those of tiles: only where it is
  // sure that calls are long.
  for (DimKind kind : {DimKind::Query, DimKind::Key}) {
    auto size = getConstantIntValue(op.getSizes()[op.firstDim(kind)]);
    if (!size || *size < fewestOfBoundedScore)
      return false;
  }
  return seesFirstKeys(op) && hasScoreBound(op);
}
