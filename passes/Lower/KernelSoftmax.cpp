//===- KernelSoftmax.cpp - softmax and attention of a kernel as funcs -----===//
#include "passes/Kernels/InlineLive.h"
#include "passes/Lower/KernelTranslator.h"
#include "passes/Lower/MaskTables.h"
#include "passes/Lower/StreamingAttention.h"
#include "passes/Masks/MaskBounds.h"
#include "passes/Mutation.h"
#include "passes/Schedule/Rewrite.h"

#include "dialects/Attn/Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;

namespace heed {

/// The funcs of one softmax, step by step.
class SoftmaxFuncs {
public:
  SoftmaxFuncs(KernelTranslator &kernel, Operation *op, Value input, Value sink,
               ArrayRef<int64_t> axes, Region &where, bool log);

  LogicalResult run() {
    if (failed(writeTop()) || failed(writeWeight()))
      return failure();
    if (normaliser.hasThreshold())
      return writeSparse();
    return failed(writeTotal()) ? failure() : writeShare();
  }

private:
  using Values = FailureOr<SmallVector<Value>>;
  /// Whether `where` lets an element take part (null: it has nothing to say),
  /// and its score.
  struct Element {
    Value ok, score;
  };

  LogicalResult writeTop();
  LogicalResult writeWeight();
  LogicalResult writeSparse();
  LogicalResult writeTotal();
  LogicalResult writeShare();
  /// \p result is what the op gives, with what is live beside it.
  LogicalResult define(FailureOr<KernelFunc *> result);

  FailureOr<Value> live(OpBuilder &b, ArrayRef<Value> all);
  FailureOr<Element> element(OpBuilder &b, ArrayRef<Value> all);
  /// Whether an element, \p ok by `where`, is live with this score.
  Value present(OpBuilder &b, Value ok, Value score);
  /// The maximum that a row's scores are compared with.
  Value shift(OpBuilder &b, ArrayRef<Value> row);
  /// An absent element is -0 where somebody asks: no other is, as weights are
  /// not negative. It is chosen in bits: libHalide and LLVM take 0 and -0 of
  /// floats for one.
  Value unlessMarked(OpBuilder &b, Value isThere, Value x);
  Value mark(OpBuilder &b) {
    return arith::ConstantOp::create(
        b, loc, b.getIntegerAttr(integer, APInt::getSignMask(real.getWidth())));
  }
  Value bitsOf(OpBuilder &b, Value x) {
    return arith::BitcastOp::create(b, loc, integer, x);
  }

  Value constant(OpBuilder &b, double value) {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(real, value));
  }
  Value select(OpBuilder &b, Value condition, Value yes, Value no) {
    return condition
               ? arith::SelectOp::create(b, loc, condition, yes, no).getResult()
               : yes;
  }
  Value readOne(OpBuilder &b, Value f, ArrayRef<Value> at) {
    return halide::ReadOp::create(b, loc, real, f, reversed(at)).getResult(0);
  }
  /// Coordinates of the whole tensor from those of a row and of the place in
  /// it, and those of its row.
  SmallVector<Value> join(ArrayRef<Value> row, ArrayRef<Value> place);
  SmallVector<Value> rowOf(ArrayRef<Value> all);

  static constexpr double infinity = std::numeric_limits<double>::infinity();

  KernelTranslator &kernel;
  Operation *op;
  Location loc;
  Value input, sink;
  ArrayRef<int64_t> axes;
  Region &where;
  const bool log;
  FloatType real;
  IntegerType integer; ///< of as many bits
  const bool marks;    ///< absent elements
  const attn::Normaliser &normaliser;
  SmallVector<Extent> extents, rows, reduced;
  SmallVector<int64_t> rowAxes;
  Value topFunc, weightFunc, totalFunc;
};

} // namespace heed

static const attn::Normaliser &normaliserOf(Operation *op) {
  auto softmax = dyn_cast<attn::SoftmaxOp>(op);
  return attn::Normaliser::of(softmax ? softmax.getMap() : attn::Map::Exp);
}

SoftmaxFuncs::SoftmaxFuncs(KernelTranslator &kernel, Operation *op, Value input,
                           Value sink, ArrayRef<int64_t> axes, Region &where,
                           bool log)
    : kernel(kernel), op(op), loc(op->getLoc()), input(input), sink(sink),
      axes(axes), where(where), log(log),
      real(cast<FloatType>(getElementTypeOrSelf(input.getType()))),
      integer(IntegerType::get(op->getContext(), real.getWidth())),
      marks(op->hasAttr(kMarksAbsentAttr)), normaliser(normaliserOf(op)),
      extents(kernel.sources[input].extents) {
  for (auto [axis, extent] : llvm::enumerate(extents)) {
    if (llvm::is_contained(axes, int64_t(axis))) {
      reduced.push_back(extent);
    } else {
      rows.push_back(extent);
      rowAxes.push_back(axis);
    }
  }
}

SmallVector<Value> SoftmaxFuncs::join(ArrayRef<Value> row,
                                      ArrayRef<Value> place) {
  SmallVector<Value> all(extents.size());
  for (auto [axis, value] : llvm::zip(rowAxes, row))
    all[axis] = value;
  for (auto [axis, value] : llvm::zip(axes, place))
    all[axis] = value;
  return all;
}

SmallVector<Value> SoftmaxFuncs::rowOf(ArrayRef<Value> all) {
  SmallVector<Value> row;
  for (int64_t axis : rowAxes)
    row.push_back(all[axis]);
  return row;
}

FailureOr<Value> SoftmaxFuncs::live(OpBuilder &b, ArrayRef<Value> all) {
  if (where.empty())
    return Value();
  IRMapping local = kernel.map;
  for (auto [arg, value] : llvm::zip(where.getArguments(), all))
    local.map(arg, value);
  if (failed(translateBody(b, where.front(), local, all, kernel)))
    return failure();
  return local.lookupOrDefault(where.front().getTerminator()->getOperand(0));
}

FailureOr<SoftmaxFuncs::Element> SoftmaxFuncs::element(OpBuilder &b,
                                                       ArrayRef<Value> all) {
  FailureOr<Value> ok = live(b, all);
  FailureOr<Value> score = kernel.read(b, loc, input, all);
  if (failed(ok) || failed(score))
    return failure();
  return Element{*ok, *score};
}

Value SoftmaxFuncs::present(OpBuilder &b, Value ok, Value score) {
  Value above = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, score,
                                      constant(b, -infinity));
  if (ok && mutated("kernel-algorithm.minus-infinity-is-live"))
    return ok;
  return ok ? arith::AndIOp::create(b, loc, ok, above).getResult() : above;
}

Value SoftmaxFuncs::shift(OpBuilder &b, ArrayRef<Value> row) {
  Value m = readOne(b, topFunc, row);
  Value none = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, m,
                                     constant(b, -infinity));
  return select(b, none, constant(b, 0.0), m);
}

Value SoftmaxFuncs::unlessMarked(OpBuilder &b, Value isThere, Value x) {
  return arith::BitcastOp::create(b, loc, real,
                                  select(b, isThere, bitsOf(b, x), mark(b)));
}

LogicalResult SoftmaxFuncs::define(FailureOr<KernelFunc *> result) {
  if (failed(result))
    return failure();
  KernelSource source;
  source.func = (*result)->func.getResult();
  source.extents = extents;
  kernel.sources[op->getResult(0)] = source;
  if (op->getResult(1).use_empty())
    return success();
  FailureOr<KernelFunc *> isLive = kernel.func(
      loc, "live", kernel.b.getI1Type(), extents,
      [&](OpBuilder &inner, ArrayRef<Value> all) -> Values {
        FailureOr<Element> one = element(inner, all);
        if (failed(one))
          return failure();
        return SmallVector<Value>{present(inner, one->ok, one->score)};
      });
  if (failed(isLive))
    return failure();
  source.func = (*isLive)->func.getResult();
  kernel.sources[op->getResult(1)] = std::move(source);
  return success();
}

/// The row maximum. It ignores NaN, which the exponential of the weights brings
/// back into its row; with no live score above -inf it is taken as 0, so that
/// no -inf is subtracted from itself.
LogicalResult SoftmaxFuncs::writeTop() {
  FailureOr<KernelFunc *> top =
      kernel.func(loc, "top", real, rows,
                  [&](OpBuilder &inner, ArrayRef<Value> row) -> Values {
                    if (!sink)
                      return SmallVector<Value>{constant(inner, -infinity)};
                    FailureOr<Value> value = kernel.read(inner, loc, sink, row);
                    if (failed(value))
                      return failure();
                    return SmallVector<Value>{*value};
                  });
  if (failed(top))
    return failure();
  topFunc = (*top)->func.getResult();
  return kernel.update(
      loc, **top, reduced,
      [&](OpBuilder &inner, ArrayRef<Value> row,
          ArrayRef<Value> place) -> Values {
        FailureOr<Element> one = element(inner, join(row, place));
        if (failed(one))
          return failure();
        Value s = one->score;
        if (one->ok && !mutated("kernel-algorithm.maximum-of-all"))
          s = select(inner, one->ok, s, constant(inner, -infinity));
        return SmallVector<Value>{arith::MaxNumFOp::create(
            inner, loc, readOne(inner, topFunc, row), s)};
      });
}

/// The exponential of each score less its row's maximum; of a normaliser with a
/// threshold that difference alone.
LogicalResult SoftmaxFuncs::writeWeight() {
  FailureOr<KernelFunc *> weight = kernel.func(
      loc, "weight", real, extents,
      [&](OpBuilder &inner, ArrayRef<Value> all) -> Values {
        FailureOr<Element> one = element(inner, all);
        if (failed(one))
          return failure();
        Value difference = arith::SubFOp::create(inner, loc, one->score,
                                                 shift(inner, rowOf(all)));
        if (normaliser.hasThreshold())
          return SmallVector<Value>{
              select(inner, one->ok, difference, constant(inner, -infinity))};
        Value e = math::ExpOp::create(inner, loc, difference);
        if (marks)
          return SmallVector<Value>{
              unlessMarked(inner, present(inner, one->ok, one->score), e)};
        return SmallVector<Value>{
            mutated("kernel-algorithm.weight-of-absent")
                ? e
                : select(inner, one->ok, e, constant(inner, 0.0))};
      });
  if (failed(weight))
    return failure();
  weightFunc = (*weight)->func.getResult();
  return success();
}

/// Weights of a normaliser with a threshold. What is called a weight is the
/// distance from the maximum still.
LogicalResult SoftmaxFuncs::writeSparse() {
  FailureOr<KernelFunc *> found =
      kernel.threshold(loc, normaliser, real, rows, reduced,
                       [&](OpBuilder &inner, ArrayRef<Value> row,
                           ArrayRef<Value> place) -> FailureOr<Value> {
                         return readOne(inner, weightFunc, join(row, place));
                       });
  if (failed(found))
    return failure();
  Value thresholdFunc = (*found)->func.getResult();
  return define(kernel.func(
      loc, "sparse", real, extents,
      [&](OpBuilder &inner, ArrayRef<Value> all) -> Values {
        FailureOr<Element> one = element(inner, all);
        if (failed(one))
          return failure();
        attn::UpstreamArithmetic a(inner, loc, real);
        Value w = normaliser.weight(
            a,
            arith::SubFOp::create(inner, loc, readOne(inner, weightFunc, all),
                                  readOne(inner, thresholdFunc, rowOf(all))));
        Value isThere = present(inner, one->ok, one->score);
        return SmallVector<Value>{
            marks ? unlessMarked(inner, isThere, w)
                  : select(inner, isThere, w, constant(inner, 0.0))};
      }));
}

/// The sum of a row's weights, and of what the sink adds.
LogicalResult SoftmaxFuncs::writeTotal() {
  FailureOr<KernelFunc *> total = kernel.func(
      loc, "total", real, rows,
      [&](OpBuilder &inner, ArrayRef<Value> row) -> Values {
        if (!sink || mutated("kernel-algorithm.sink-without-weight"))
          return SmallVector<Value>{constant(inner, 0.0)};
        FailureOr<Value> value = kernel.read(inner, loc, sink, row);
        if (failed(value))
          return failure();
        Value difference =
            arith::SubFOp::create(inner, loc, *value, shift(inner, row));
        return SmallVector<Value>{
            math::ExpOp::create(inner, loc, difference).getResult()};
      });
  if (failed(total))
    return failure();
  totalFunc = (*total)->func.getResult();
  return kernel.update(loc, **total, reduced,
                       [&](OpBuilder &inner, ArrayRef<Value> row,
                           ArrayRef<Value> place) -> Values {
                         SmallVector<Value> sum{arith::AddFOp::create(
                             inner, loc, readOne(inner, totalFunc, row),
                             readOne(inner, weightFunc, join(row, place)))};
                         relaxSums(sum);
                         return sum;
                       });
}

/// The result: each weight's share of the total, or its logarithm.
LogicalResult SoftmaxFuncs::writeShare() {
  return define(kernel.func(
      loc, "softmax", real, extents,
      [&](OpBuilder &inner, ArrayRef<Value> all) -> Values {
        SmallVector<Value> row = rowOf(all);
        Value l = readOne(inner, totalFunc, row);
        if (log) {
          FailureOr<Element> one = element(inner, all);
          if (failed(one))
            return failure();
          Value value =
              arith::SubFOp::create(inner, loc, one->score, shift(inner, row));
          value = arith::SubFOp::create(inner, loc, value,
                                        math::LogOp::create(inner, loc, l));
          return SmallVector<Value>{select(inner,
                                           present(inner, one->ok, one->score),
                                           value, constant(inner, -infinity))};
        }
        // One division a row. The total is 1 at least or NaN, and 0 where every
        // element is absent.
        Value share =
            arith::DivFOp::create(inner, loc, constant(inner, 1.0), l);
        Value w = readOne(inner, weightFunc, all);
        Value value = arith::MulFOp::create(inner, loc, w, share);
        if (marks) {
          Value isThere =
              arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::ne,
                                    bitsOf(inner, w), mark(inner));
          return SmallVector<Value>{unlessMarked(inner, isThere, value)};
        }
        // In a row that a NaN has taken its weight of 0 says nothing.
        FailureOr<Element> one = element(inner, all);
        if (failed(one))
          return failure();
        Value isThere = present(inner, one->ok, one->score);
        if (mutated("kernel-algorithm.divide-empty-row"))
          isThere = one->ok;
        return SmallVector<Value>{
            select(inner, isThere, value, constant(inner, 0.0))};
      }));
}

LogicalResult KernelTranslator::softmax(Operation *op, Value input, Value sink,
                                        ArrayRef<int64_t> axes, Region &where,
                                        bool log) {
  return SoftmaxFuncs(*this, op, input, sink, axes, where, log).run();
}

LogicalResult KernelTranslator::attention(StreamedAttention streamed) {
  attn::OnlineAttentionOp op = streamed.online;
  attn::FinishOp finish = streamed.finish;
  FailureOr<MaskBounds> bounds = readMask(op);
  // For few queries to evaluate the mask before gains nothing, unless there are
  // tables anyway: then all forms share them.
  if (succeeded(bounds) && bounds->evaluated &&
      (form == attn::Form::Rows || form == attn::Form::Narrow)) {
    bounds->evaluated = false;
    bounds->evaluated = bounds->needsTables();
  }
  MaskTiling tiling;
  FailureOr<StreamingResults> funcs =
      buildStreamingAttention(b, streamed, map, *this, target, form,
                              succeeded(bounds) ? &*bounds : nullptr, tiling);
  if (failed(funcs))
    return failure();
  if (succeeded(bounds) && bounds->needsTables())
    masks.push_back({op, tiling});
  bool alone = true; // nothing but the attention is in the kernel
  auto define = [&](Value result, halide::FuncOp func,
                    ArrayRef<unsigned> dims) {
    KernelSource source;
    source.func = func.getResult();
    for (unsigned dim : dims) {
      Value size = op.getSizes()[dim];
      APInt constant;
      if (matchPattern(size, m_ConstantInt(&constant)))
        source.extents.push_back(
            fixedExtent(op.getLoc(), constant.getSExtValue()));
      else
        source.extents.push_back({size32(size), std::nullopt});
    }
    sources[result] = std::move(source);
    bool returned =
        result.hasOneUse() && isa<func::ReturnOp>(*result.getUsers().begin());
    if (!returned)
      halide::ComputeRootOp::create(b, op.getLoc(), func.getResult());
    alone &= returned;
  };
  SmallVector<unsigned> dims;
  for (AffineExpr expr : streamed.outputMap().getResults())
    dims.push_back(cast<AffineDimExpr>(expr).getPosition());
  if (funcs->output) // else the log-sum-exp alone is read
    define(finish.getOutput(), funcs->output, dims);
  if (funcs->lse) {
    // One axis per batch and query dim: the first loop dims.
    dims.clear();
    for (unsigned dim = 0; dim < op.firstDim(attn::DimKind::Key); ++dim)
      dims.push_back(dim);
    define(finish.getLse(), funcs->lse, dims);
  }
  if (alone)
    info->family = "streaming attention";
  return success();
}
