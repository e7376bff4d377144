//===- TwoPasses.cpp - an attention whose sums come first -----------------===//
// weight(exp(s - m) / l) is weight(exp(s - lse)) with lse = m + log l, which
// takes a maximum off the scores like any other row-wise shift
// (docs/language.md, "row-maximum"), and nothing across a rounding of the
// weight.
#include "passes/Plan/TwoPasses.h"
#include "passes/Mutation.h"

#include "dialects/Attn/Normaliser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace heed;
using attn::DimKind;

/// Whether \p region yields its last argument times something that does not
/// depend on it.
static bool isLinear(Region &region) {
  Block &body = region.front();
  Value weight = body.getArguments().back();
  Value value = body.getTerminator()->getOperand(0);
  llvm::SmallPtrSet<Value, 8> tainted{weight};
  for (Operation &inner : body.without_terminator())
    if (llvm::any_of(inner.getOperands(),
                     [&](Value v) { return tainted.contains(v); }))
      tainted.insert(inner.result_begin(), inner.result_end());
  while (value != weight) {
    Operation *def = value.getDefiningOp();
    if (!def || def->getBlock() != &body || !tainted.contains(value))
      return false;
    if (isa<arith::NegFOp>(def)) {
      value = def->getOperand(0);
      continue;
    }
    if (!isa<arith::MulFOp, arith::DivFOp>(def) &&
        !(isa<arith::AddFOp>(def) && mutated("attention-plan.sum-is-linear")))
      return false;
    bool left = tainted.contains(def->getOperand(0)),
         right = tainted.contains(def->getOperand(1));
    if (left == right || (right && isa<arith::DivFOp>(def) &&
                          !mutated("attention-plan.divisor-is-linear")))
      return false;
    value = def->getOperand(right);
  }
  return true;
}

bool heed::needsSumFirst(attn::AttentionOp op) {
  return !op.getWeight().empty() && op.getDivide() &&
         !isLinear(op.getWeight()) &&
         !mutated("choose-algorithm.any-factor-streams");
}

/// Whether \p region rounds its last argument to 16 bits before anything else
/// is made of it.
static bool isRounded(Region &region) {
  Value weight = region.front().getArguments().back();
  return llvm::all_of(weight.getUsers(), [](Operation *user) {
    return isa<arith::TruncFOp>(user) &&
           getElementTypeOrSelf(user->getResult(0)).getIntOrFloatBitWidth() ==
               16;
  });
}

bool heed::hasTwoPasses(attn::AttentionOp op) {
  // What an empty row is instead of 0 is said by its sum alone.
  return attn::Normaliser::of(op).isShiftable && !op.getEmpty() &&
         !op.getLse() && !op.getWeights() && !op.getWeight().empty() &&
         isRounded(op.getWeight());
}

namespace {

class Writer {
public:
  Writer(OpBuilder &b, attn::AttentionOp op)
      : b(b), op(op), loc(op.getLoc()), rank(op.firstDim(DimKind::Key)) {}
  TwoPasses run();

private:
  attn::AttentionOp sums();
  attn::AttentionOp weights(Value shift);
  Value shiftOf(Value lse);
  Value isLarge(Value lse);
  Value real(const APFloat &value) {
    return arith::ConstantOp::create(b, loc,
                                     FloatAttr::get(b.getF32Type(), value));
  }
  void copyRegions(attn::AttentionOp to, ArrayRef<Region *> but);

  OpBuilder &b;
  attn::AttentionOp op;
  Location loc;
  unsigned rank; ///< batch and query dims
};

} // namespace

void Writer::copyRegions(attn::AttentionOp to, ArrayRef<Region *> but) {
  for (auto [from, into] : llvm::zip(op->getRegions(), to->getRegions())) {
    IRMapping mapping;
    if (!llvm::is_contained(but, &from))
      from.cloneInto(&into, mapping);
  }
}

/// The op with the value 1, whose log-sum-exp is wanted.
attn::AttentionOp Writer::sums() {
  SmallVector<int64_t> dims(op.getDims()), shape;
  dims[unsigned(DimKind::Value)] = 0;
  // The loop dims without those of values, which stand last.
  unsigned loops = op.firstDim(DimKind::Value);
  auto withoutValues = [&](AffineMap map) {
    return AffineMap::get(loops, map.getNumSymbols(), map.getResults(),
                          b.getContext());
  };
  SmallVector<AffineMap> maps;
  for (AffineMap map : op.getTermMaps().getAsValueRange<AffineMapAttr>())
    maps.push_back(withoutValues(map));
  AffineMap output = op.outputMap();
  auto type = cast<RankedTensorType>(op.getOutput().getType());
  for (unsigned dim = 0; dim < rank; ++dim)
    shape.push_back(
        type.getDimSize(*output.getResultPosition(b.getAffineDimExpr(dim))));
  auto rows = RankedTensorType::get(shape, b.getF32Type());
  auto number = RankedTensorType::get({}, b.getF32Type());
  Value one =
      arith::ConstantOp::create(b, loc, DenseElementsAttr::get(number, 1.0f));
  AffineMap ofOne =
      AffineMap::get(loops, op.getSymbols().size(), b.getContext());
  AffineMapAttr sink;
  bool sinks = op.getSink() && !mutated("choose-algorithm.sums-without-sink");
  if (sinks)
    sink = AffineMapAttr::get(withoutValues(*op.getSinkMap()));
  auto fresh = attn::AttentionOp::create(
      b, loc, rows, rows, Type(), op.getSizes().take_front(loops),
      op.getSymbols(), op.getTermOperands(), one,
      sinks ? op.getSink() : Value(), Value(), b.getDenseI64ArrayAttr(dims),
      op.getTermArityAttr(), b.getAffineMapArrayAttr(maps),
      b.getAffineMapArrayAttr(ofOne), sink, AffineMapAttr(), op.getMapAttr(),
      op.getDivideAttr(), op.getStabiliseAttr(), op.numTerms());
  copyRegions(fresh, {&op.getWeight()});
  return fresh;
}

/// \p lse, or 0 of a row whose every score is -inf: less it, they are -inf.
Value Writer::shiftOf(Value lse) {
  AffineMap own = AffineMap::getMultiDimIdentityMap(rank, b.getContext());
  SmallVector<utils::IteratorType> parallel(rank,
                                            utils::IteratorType::parallel);
  Value none = real(APFloat::getInf(APFloat::IEEEsingle(), /*Negative=*/true)),
        zero = mutated("choose-algorithm.lowest-taken-off")
                   ? none
                   : real(APFloat::getZero(APFloat::IEEEsingle()));
  Value empty = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, lse), b.getF32Type());
  return linalg::GenericOp::create(
             b, loc, lse.getType(), lse, empty, ArrayRef{own, own}, parallel,
             [&](OpBuilder &in, Location where, ValueRange v) {
               Value isNone = arith::CmpFOp::create(
                   in, where, arith::CmpFPredicate::OEQ, v[0], none);
               linalg::YieldOp::create(
                   in, where,
                   arith::SelectOp::create(in, where, isNone, zero, v[0])
                       .getResult());
             })
      .getResult(0);
}

/// Whether some row's log-sum-exp has too few digits behind the point, or is
/// NaN or inf: below 512 it and a score are right to three times 2^-16 each, a
/// fifth of what a weight is rounded by in f16.
Value Writer::isLarge(Value shift) {
  AffineMap own = AffineMap::getMultiDimIdentityMap(rank, b.getContext()),
            number = AffineMap::get(rank, 0, b.getContext());
  SmallVector<utils::IteratorType> reduction(rank,
                                             utils::IteratorType::reduction);
  Value most =
      real(APFloat(mutated("choose-algorithm.none-is-large") ? 1e30f : 512.0f));
  Value no = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
  Value start =
      linalg::FillOp::create(
          b, loc, no,
          tensor::EmptyOp::create(b, loc, ArrayRef<int64_t>(), b.getI1Type())
              .getResult())
          .getResult(0);
  Value any =
      linalg::GenericOp::create(
          b, loc, start.getType(), shift, start, ArrayRef{own, number},
          reduction,
          [&](OpBuilder &in, Location where, ValueRange v) {
            Value size = math::AbsFOp::create(in, where, v[0]);
            Value large = arith::CmpFOp::create(
                in, where, arith::CmpFPredicate::UGE, size, most);
            linalg::YieldOp::create(
                in, where,
                arith::OrIOp::create(in, where, large, v[1]).getResult());
          })
          .getResult(0);
  return tensor::ExtractOp::create(b, loc, any, ValueRange());
}

/// The op less its division: the scores take \p shift off.
attn::AttentionOp Writer::weights(Value shift) {
  auto fresh = attn::AttentionOp::create(
      b, loc, op.getOutput().getType(), Type(), Type(), op.getSizes(),
      op.getSymbols(), op.getTermOperands(), op.getValues(), Value(), Value(),
      op.getDimsAttr(), op.getTermArityAttr(), op.getTermMapsAttr(),
      op.getValueMapsAttr(), AffineMapAttr(), op.getResultMapAttr(),
      op.getMapAttr(), UnitAttr(), UnitAttr(), op.numTerms());
  copyRegions(fresh, {});
  Block &score = fresh.getScore().front();
  Operation *yield = score.getTerminator();
  OpBuilder in(yield);
  Value ofRow = tensor::ExtractOp::create(
      in, loc, shift, score.getArguments().take_front(rank));
  yield->setOperand(
      0, arith::SubFOp::create(in, loc, yield->getOperand(0), ofRow));
  return fresh;
}

TwoPasses Writer::run() {
  b.setInsertionPoint(op);
  TwoPasses passes{sums(), {}, {}};
  Value shift = shiftOf(passes.sums.getLse());
  auto choice =
      scf::IfOp::create(b, loc, op.getOutput().getType(), isLarge(shift),
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  op.getOutput().replaceAllUsesWith(choice.getResult(0));
  b.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(b, loc, op.getOutput());
  op->moveBefore(choice.thenBlock(), choice.thenBlock()->begin());
  passes.whole = op;
  b.setInsertionPointToStart(choice.elseBlock());
  passes.weights = weights(shift);
  scf::YieldOp::create(b, loc, passes.weights.getOutput());
  return passes;
}

TwoPasses heed::inTwoPasses(OpBuilder &b, attn::AttentionOp op) {
  return Writer(b, op).run();
}
