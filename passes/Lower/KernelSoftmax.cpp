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

LogicalResult KernelTranslator::softmax(Operation *op, Value input, Value sink,
                                        ArrayRef<int64_t> axes, Region &where,
                                        bool log) {
  Location loc = op->getLoc();
  auto type = cast<RankedTensorType>(input.getType());
  auto real = cast<FloatType>(type.getElementType());
  SmallVector<Extent> extents = sources[input].extents, rows, reduced;
  SmallVector<int64_t> rowAxes;
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    if (llvm::is_contained(axes, axis)) {
      reduced.push_back(extents[axis]);
    } else {
      rows.push_back(extents[axis]);
      rowAxes.push_back(axis);
    }
  }
  auto constant = [&](OpBuilder &inner, double value) -> Value {
    return arith::ConstantOp::create(inner, loc,
                                     inner.getFloatAttr(real, value));
  };
  double infinity = std::numeric_limits<double>::infinity();
  /// Coordinates of the whole tensor from those of a row and of the place in
  /// it.
  auto join = [&](ArrayRef<Value> row, ArrayRef<Value> place) {
    SmallVector<Value> all(type.getRank());
    for (auto [axis, value] : llvm::zip(rowAxes, row))
      all[axis] = value;
    for (auto [axis, value] : llvm::zip(axes, place))
      all[axis] = value;
    return all;
  };
  auto rowOf = [&](ArrayRef<Value> all) {
    SmallVector<Value> row;
    for (int64_t axis : rowAxes)
      row.push_back(all[axis]);
    return row;
  };
  auto live = [&](OpBuilder &inner, ArrayRef<Value> all) -> FailureOr<Value> {
    if (where.empty())
      return Value();
    IRMapping local = map;
    for (auto [arg, value] : llvm::zip(where.getArguments(), all))
      local.map(arg, value);
    if (failed(translateBody(inner, where.front(), local, all, *this)))
      return failure();
    return local.lookupOrDefault(where.front().getTerminator()->getOperand(0));
  };
  auto select = [&](OpBuilder &inner, Value condition, Value yes, Value no) {
    return condition ? arith::SelectOp::create(inner, loc, condition, yes, no)
                           .getResult()
                     : yes;
  };
  /// An absent element is -0 where somebody asks: no other is, as weights are
  /// not negative. It is chosen in bits: libHalide and LLVM take 0 and -0 of
  /// floats for one.
  const bool marks = op->hasAttr(kMarksAbsentAttr);
  auto integer = b.getIntegerType(real.getWidth());
  auto bitsOf = [&](OpBuilder &inner, Value x) -> Value {
    return arith::BitcastOp::create(inner, loc, integer, x);
  };
  auto mark = [&](OpBuilder &inner) -> Value {
    return arith::ConstantOp::create(
        inner, loc,
        inner.getIntegerAttr(integer, APInt::getSignMask(real.getWidth())));
  };
  auto unlessMarked = [&](OpBuilder &inner, Value isThere, Value x) -> Value {
    return arith::BitcastOp::create(
        inner, loc, real,
        select(inner, isThere, bitsOf(inner, x), mark(inner)));
  };
  /// Whether a key, \p ok by `where`, is live with this score.
  auto present = [&](OpBuilder &inner, Value ok, Value score) -> Value {
    Value above = arith::CmpFOp::create(inner, loc, arith::CmpFPredicate::UNE,
                                        score, constant(inner, -infinity));
    if (ok && mutated("kernel-algorithm.minus-infinity-is-live"))
      return ok;
    return ok ? arith::AndIOp::create(inner, loc, ok, above).getResult()
              : above;
  };
  auto readOne = [&](OpBuilder &inner, Value f, ArrayRef<Value> at) {
    return halide::ReadOp::create(inner, loc, real, f, reversed(at))
        .getResult(0);
  };
  using Values = FailureOr<SmallVector<Value>>;
  /// \p result is what the op gives, with what is live beside it.
  auto define = [&](FailureOr<KernelFunc *> result) -> LogicalResult {
    if (failed(result))
      return failure();
    KernelSource source;
    source.func = (*result)->func.getResult();
    source.extents = extents;
    sources[op->getResult(0)] = source;
    if (op->getResult(1).use_empty())
      return success();
    FailureOr<KernelFunc *> isLive =
        func(loc, "live", b.getI1Type(), extents,
             [&](OpBuilder &inner, ArrayRef<Value> all) -> Values {
               FailureOr<Value> ok = live(inner, all);
               FailureOr<Value> score = read(inner, loc, input, all);
               if (failed(ok) || failed(score))
                 return failure();
               return SmallVector<Value>{present(inner, *ok, *score)};
             });
    if (failed(isLive))
      return failure();
    source.func = (*isLive)->func.getResult();
    sources[op->getResult(1)] = std::move(source);
    return success();
  };

  // The row maximum. It ignores NaN, which the exponential below brings back
  // into its row; with no live score above -inf it is taken as 0, so that no
  // -inf is subtracted from itself.
  FailureOr<KernelFunc *> top =
      func(loc, "top", real, rows,
           [&](OpBuilder &inner, ArrayRef<Value> row) -> Values {
             if (!sink)
               return SmallVector<Value>{constant(inner, -infinity)};
             FailureOr<Value> value = read(inner, loc, sink, row);
             if (failed(value))
               return failure();
             return SmallVector<Value>{*value};
           });
  if (failed(top))
    return failure();
  Value topFunc = (*top)->func.getResult();
  if (failed(update(loc, **top, reduced,
                    [&](OpBuilder &inner, ArrayRef<Value> row,
                        ArrayRef<Value> place) -> Values {
                      SmallVector<Value> all = join(row, place);
                      FailureOr<Value> ok = live(inner, all);
                      FailureOr<Value> score = read(inner, loc, input, all);
                      if (failed(ok) || failed(score))
                        return failure();
                      Value s = *score;
                      if (*ok && !mutated("kernel-algorithm.maximum-of-all"))
                        s = select(inner, *ok, s, constant(inner, -infinity));
                      return SmallVector<Value>{arith::MaxNumFOp::create(
                          inner, loc, readOne(inner, topFunc, row), s)};
                    })))
    return failure();
  auto shift = [&](OpBuilder &inner, ArrayRef<Value> row) -> Value {
    Value m = readOne(inner, topFunc, row);
    Value none = arith::CmpFOp::create(inner, loc, arith::CmpFPredicate::OEQ, m,
                                       constant(inner, -infinity));
    return select(inner, none, constant(inner, 0.0), m);
  };
  auto softmax = dyn_cast<attn::SoftmaxOp>(op);
  const attn::Normaliser &normaliser =
      attn::Normaliser::of(softmax ? softmax.getMap() : attn::Map::Exp);
  FailureOr<KernelFunc *> weight =
      func(loc, "weight", real, extents,
           [&](OpBuilder &inner, ArrayRef<Value> all) -> Values {
             FailureOr<Value> ok = live(inner, all);
             FailureOr<Value> score = read(inner, loc, input, all);
             if (failed(ok) || failed(score))
               return failure();
             Value difference = arith::SubFOp::create(inner, loc, *score,
                                                      shift(inner, rowOf(all)));
             if (normaliser.hasThreshold())
               return SmallVector<Value>{
                   select(inner, *ok, difference, constant(inner, -infinity))};
             Value e = math::ExpOp::create(inner, loc, difference);
             if (marks)
               return SmallVector<Value>{
                   unlessMarked(inner, present(inner, *ok, *score), e)};
             return SmallVector<Value>{
                 mutated("kernel-algorithm.weight-of-absent")
                     ? e
                     : select(inner, *ok, e, constant(inner, 0.0))};
           });
  if (failed(weight))
    return failure();
  Value weightFunc = (*weight)->func.getResult();
  if (normaliser.hasThreshold()) {
    // What is called a weight is the distance from the maximum still.
    FailureOr<KernelFunc *> found =
        threshold(loc, normaliser, real, rows, reduced,
                  [&](OpBuilder &inner, ArrayRef<Value> row,
                      ArrayRef<Value> place) -> FailureOr<Value> {
                    return readOne(inner, weightFunc, join(row, place));
                  });
    if (failed(found))
      return failure();
    Value thresholdFunc = (*found)->func.getResult();
    return define(func(
        loc, "sparse", real, extents,
        [&](OpBuilder &inner, ArrayRef<Value> all) -> Values {
          FailureOr<Value> ok = live(inner, all);
          FailureOr<Value> score = read(inner, loc, input, all);
          if (failed(ok) || failed(score))
            return failure();
          attn::UpstreamArithmetic a(inner, loc, real);
          Value w = normaliser.weight(
              a,
              arith::SubFOp::create(inner, loc, readOne(inner, weightFunc, all),
                                    readOne(inner, thresholdFunc, rowOf(all))));
          Value isThere = present(inner, *ok, *score);
          return SmallVector<Value>{
              marks ? unlessMarked(inner, isThere, w)
                    : select(inner, isThere, w, constant(inner, 0.0))};
        }));
  }
  FailureOr<KernelFunc *> total =
      func(loc, "total", real, rows,
           [&](OpBuilder &inner, ArrayRef<Value> row) -> Values {
             if (!sink || mutated("kernel-algorithm.sink-without-weight"))
               return SmallVector<Value>{constant(inner, 0.0)};
             FailureOr<Value> value = read(inner, loc, sink, row);
             if (failed(value))
               return failure();
             Value difference =
                 arith::SubFOp::create(inner, loc, *value, shift(inner, row));
             return SmallVector<Value>{
                 math::ExpOp::create(inner, loc, difference).getResult()};
           });
  if (failed(total))
    return failure();
  Value totalFunc = (*total)->func.getResult();
  if (failed(update(loc, **total, reduced,
                    [&](OpBuilder &inner, ArrayRef<Value> row,
                        ArrayRef<Value> place) -> Values {
                      SmallVector<Value> sum{arith::AddFOp::create(
                          inner, loc, readOne(inner, totalFunc, row),
                          readOne(inner, weightFunc, join(row, place)))};
                      relaxSums(sum);
                      return sum;
                    })))
    return failure();
  return define(func(
      loc, "softmax", real, extents,
      [&](OpBuilder &inner, ArrayRef<Value> all) -> Values {
        SmallVector<Value> row = rowOf(all);
        Value l = readOne(inner, totalFunc, row);
        if (log) {
          FailureOr<Value> ok = live(inner, all);
          FailureOr<Value> score = read(inner, loc, input, all);
          if (failed(ok) || failed(score))
            return failure();
          Value value =
              arith::SubFOp::create(inner, loc, *score, shift(inner, row));
          value = arith::SubFOp::create(inner, loc, value,
                                        math::LogOp::create(inner, loc, l));
          return SmallVector<Value>{select(inner, present(inner, *ok, *score),
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
        FailureOr<Value> ok = live(inner, all);
        FailureOr<Value> score = read(inner, loc, input, all);
        if (failed(ok) || failed(score))
          return failure();
        Value isThere = present(inner, *ok, *score);
        if (mutated("kernel-algorithm.divide-empty-row"))
          isThere = *ok;
        return SmallVector<Value>{
            select(inner, isThere, value, constant(inner, 0.0))};
      }));
}

LogicalResult KernelTranslator::attention(StreamedAttention streamed) {
  attn::OnlineAttentionOp op = streamed.online;
  attn::FinishOp finish = streamed.finish;
  FailureOr<MaskBounds> bounds = readMask(op);
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
