//===- KernelThreshold.cpp - the threshold of a row as a func -------------===//
// Newton's steps over a row, which is in the cache: one func, whose loops are
// the steps and in each of them the keys. Its state is the threshold of the
// step and the sums so far; the first key of a step makes the next threshold of
// the sums of the step before.
#include "passes/Lower/KernelTranslator.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;

namespace {

/// One comparison for the larger of \p x and a number.
struct StepArithmetic : attn::UpstreamArithmetic {
  using UpstreamArithmetic::UpstreamArithmetic;
  Value larger(Value x, Value y) override {
    Value below =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, y);
    return arith::SelectOp::create(b, loc, below, y, x);
  }
};

/// The state after a key, from \p old: the step's threshold and its sums so
/// far. \p keys are the places in the row, \p score what is there.
FailureOr<SmallVector<Value>>
newtonStep(OpBuilder &b, Location loc, const attn::Normaliser &normaliser,
           FloatType type, halide::ReadOp old, ArrayRef<Value> keys,
           function_ref<FailureOr<Value>()> score) {
  StepArithmetic a(b, loc, type);
  Value isLater;
  for (Value key : keys) {
    Value is = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, key,
                                     constantI32(b, loc, 0));
    isLater =
        isLater ? arith::OrIOp::create(b, loc, isLater, is).getResult() : is;
  }
  auto ifFirst = [&](Value yes, Value no) -> Value {
    return arith::SelectOp::create(b, loc, isLater,
                                   halide::LikelyOp::create(b, loc, no), yes);
  };
  Value t =
      ifFirst(attn::Normaliser::nextThreshold(
                  a, old.getResult(0), old.getResult(1), old.getResult(2)),
              old.getResult(0));
  FailureOr<Value> s = score();
  if (failed(s))
    return failure();
  Value x = arith::SubFOp::create(b, loc, *s, t);
  return SmallVector<Value>{
      t,
      a.add(mutated("kernel-algorithm.threshold-keeps-sum")
                ? old.getResult(1)
                : ifFirst(a.real(0), old.getResult(1)),
            normaliser.weight(a, x)),
      a.add(mutated("kernel-algorithm.threshold-keeps-slope")
                ? old.getResult(2)
                : ifFirst(a.real(0), old.getResult(2)),
            normaliser.slope(a, x))};
}

} // namespace

FailureOr<KernelFunc *> KernelTranslator::threshold(
    Location loc, const attn::Normaliser &normaliser, FloatType type,
    ArrayRef<Extent> rows, ArrayRef<Extent> reduced,
    function_ref<FailureOr<Value>(OpBuilder &, ArrayRef<Value>,
                                  ArrayRef<Value>)>
        score) {
  using Values = FailureOr<SmallVector<Value>>;
  // Many steps over a row want it in the cache.
  info->kind = "row block";
  SmallVector<Type> types(3, type);
  // Sums of 1 leave the first threshold as it is.
  FailureOr<KernelFunc *> newton =
      func(loc, "newton", types, rows,
           [&](OpBuilder &inner, ArrayRef<Value>) -> Values {
             attn::UpstreamArithmetic a(inner, loc, type);
             return SmallVector<Value>{a.real(-normaliser.one), a.real(1),
                                       a.real(1)};
           });
  if (failed(newton))
    return failure();
  Value state = (*newton)->func.getResult();
  SmallVector<Extent> loops{
      fixedExtent(loc, mutated("kernel-algorithm.threshold-of-one-step")
                           ? 1
                           : attn::Normaliser::steps)};
  loops.append(reduced.begin(), reduced.end());
  if (failed(update(loc, **newton, loops,
                    [&](OpBuilder &inner, ArrayRef<Value> row,
                        ArrayRef<Value> place) -> Values {
                      auto old = halide::ReadOp::create(inner, loc, types,
                                                        state, reversed(row));
                      ArrayRef<Value> keys = place.drop_front();
                      return newtonStep(
                          inner, loc, normaliser, type, old, keys,
                          [&] { return score(inner, row, keys); });
                    })))
    return failure();
  return func(
      loc, "threshold", type, rows,
      [&](OpBuilder &inner, ArrayRef<Value> row) -> Values {
        auto last =
            halide::ReadOp::create(inner, loc, types, state, reversed(row));
        attn::UpstreamArithmetic a(inner, loc, type);
        return SmallVector<Value>{attn::Normaliser::nextThreshold(
            a, last.getResult(0), last.getResult(1), last.getResult(2))};
      });
}

LogicalResult KernelTranslator::threshold(attn::ThresholdOp op) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getInput().getType());
  SmallVector<Extent> rows, reduced;
  for (auto [axis, extent] : llvm::enumerate(sources[op.getInput()].extents))
    (llvm::is_contained(op.getAxes(), axis) ? reduced : rows).push_back(extent);
  FailureOr<KernelFunc *> found = threshold(
      loc, attn::Normaliser::of(op.getMap()),
      cast<FloatType>(type.getElementType()), rows, reduced,
      [&](OpBuilder &inner, ArrayRef<Value> row, ArrayRef<Value> place) {
        SmallVector<Value> at;
        for (int64_t axis = 0; axis < type.getRank(); ++axis) {
          auto &from = llvm::is_contained(op.getAxes(), axis) ? place : row;
          at.push_back(from.front());
          from = from.drop_front();
        }
        return read(inner, loc, op.getInput(), at);
      });
  if (failed(found))
    return failure();
  KernelSource source;
  source.func = (*found)->func.getResult();
  source.extents = rows;
  sources[op.getResult()] = std::move(source);
  return success();
}
