//===- Decompose.cpp - what softmax means, in upstream ops ----------------===//
// Written to be read as the definition, not to be fast: scores are stored
// whole, and each step is one linalg.generic.
#include "dialects/Attn/Decompose.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace heed::attn;
using namespace heed::attn::decompose;

Rows decompose::makeRows(MLIRContext *context, ArrayRef<OpFoldResult> sizes,
                         ArrayRef<unsigned> keys, Type type) {
  Rows rows;
  rows.sizes.assign(sizes.begin(), sizes.end());
  rows.keys.assign(keys.begin(), keys.end());
  rows.type = type;
  SmallVector<AffineExpr> exprs;
  for (unsigned d = 0; d < sizes.size(); ++d)
    if (!llvm::is_contained(keys, d)) {
      exprs.push_back(getAffineDimExpr(d, context));
      rows.rowSizes.push_back(sizes[d]);
    }
  rows.all = AffineMap::getMultiDimIdentityMap(sizes.size(), context);
  rows.row = AffineMap::get(sizes.size(), 0, exprs, context);
  return rows;
}

namespace {

/// Weights in upstream ops.
struct UpstreamArithmetic : WeightArithmetic {
  UpstreamArithmetic(Build at, Type type) : at(at), type(type) {}
  Value real(double value) override { return at.real(type, value); }
  Value negate(Value x) override {
    return arith::NegFOp::create(at.b, at.loc, x);
  }
  Value add(Value x, Value y) override {
    return arith::AddFOp::create(at.b, at.loc, x, y);
  }
  Value divide(Value x, Value y) override {
    return arith::DivFOp::create(at.b, at.loc, x, y);
  }
  Value larger(Value x, Value y) override {
    return arith::MaximumFOp::create(at.b, at.loc, x, y);
  }
  Value exp(Value x) override { return math::ExpOp::create(at.b, at.loc, x); }

  Build at;
  Type type;
};

} // namespace

Value decompose::weightOf(Build at, const Normaliser &normaliser, Value score,
                          Value maximum) {
  if (maximum)
    score = arith::SubFOp::create(at.b, at.loc, score, maximum);
  UpstreamArithmetic arithmetic(at, score.getType());
  return normaliser.weight(arithmetic, score);
}

void decompose::normalise(Build at, Rows &rows, const Normaliser &normaliser,
                          bool stabilise) {
  OpBuilder &b = at.b;
  Location loc = at.loc;
  AffineMap rowOnly =
      AffineMap::getMultiDimIdentityMap(rows.rowSizes.size(), b.getContext());

  if (normaliser.excludesLowest) {
    // A score of -inf is an excluded key; NaN is none.
    rows.where = at.generic(
        {rows.where, rows.scores}, {at.empty(rows.sizes, b.getI1Type())},
        {rows.all, rows.all, rows.all}, {},
        [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
          Build in{b, loc};
          return {in.andNot(v[0], in.equals(v[1], in.lowest(rows.type)))};
        })[0];
    Value maximum =
        at.generic({rows.scores, rows.where},
                   {at.filled(rows.rowSizes, at.lowest(rows.type))},
                   {rows.all, rows.all, rows.row}, rows.keys,
                   [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                     Build in{b, loc};
                     Value s = arith::SelectOp::create(b, loc, v[1], v[0],
                                                       in.lowest(rows.type));
                     return {arith::MaximumFOp::create(b, loc, v[2], s)};
                   })[0];
    rows.dead = at.generic(
        {maximum}, {at.empty(rows.rowSizes, b.getI1Type())}, {rowOnly, rowOnly},
        {}, [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
          Build in{b, loc};
          return {in.equals(v[0], in.lowest(rows.type))};
        })[0];
    if (stabilise && rows.sink)
      maximum =
          at.generic({maximum, rows.sink}, {at.empty(rows.rowSizes, rows.type)},
                     {rowOnly, rowOnly, rowOnly}, {},
                     [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                       return {arith::MaximumFOp::create(b, loc, v[0], v[1])};
                     })[0];
    if (stabilise)
      rows.maximum = maximum;
  } else {
    rows.dead =
        at.generic({rows.where}, {at.filled(rows.rowSizes, at.truth(true))},
                   {rows.all, rows.row}, rows.keys,
                   [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                     return {Build{b, loc}.andNot(v[1], v[0])};
                   })[0];
  }

  Value start = at.filled(rows.rowSizes, at.real(rows.type, 0));
  if (rows.sink) {
    SmallVector<Value> ins{rows.sink};
    if (rows.maximum)
      ins.push_back(rows.maximum);
    SmallVector<AffineMap> maps(ins.size() + 1, rowOnly);
    start = at.generic(ins, {at.empty(rows.rowSizes, rows.type)}, maps, {},
                       [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                         // A sink of -inf adds nothing, also to a row of
                         // nothing else, where the difference is NaN.
                         Build in{b, loc};
                         Value w = weightOf(in, normaliser, v[0],
                                            rows.maximum ? v[1] : Value());
                         return {arith::SelectOp::create(
                             b, loc, in.equals(v[0], in.lowest(rows.type)),
                             in.real(rows.type, 0), w)};
                       })[0];
  }
  SmallVector<Value> ins{rows.scores, rows.where, rows.dead};
  SmallVector<AffineMap> maps{rows.all, rows.all, rows.row};
  if (rows.maximum) {
    ins.push_back(rows.maximum);
    maps.push_back(rows.row);
  }
  maps.push_back(rows.row);
  rows.sum = at.generic(
      ins, {start}, maps, rows.keys,
      [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
        Build in{b, loc};
        Value w = weightOf(in, normaliser, v[0], rows.maximum ? v[3] : Value());
        Value live = in.andNot(v[1], v[2]);
        w = arith::SelectOp::create(b, loc, live, w, in.real(rows.type, 0));
        return {arith::AddFOp::create(b, loc, v.back(), w)};
      })[0];
}

namespace {

template <typename Op>
FailureOr<SmallVector<Value>> decomposeSoftmax(Op op, OpBuilder &b,
                                               bool logarithm) {
  Location loc = op.getLoc();
  Build at{b, loc};
  auto type = cast<RankedTensorType>(op.getInput().getType());
  SmallVector<unsigned> keys(op.getAxes().begin(), op.getAxes().end());
  Rows rows =
      makeRows(b.getContext(), tensor::getMixedSizes(b, loc, op.getInput()),
               keys, type.getElementType());
  rows.scores = op.getInput();
  rows.sink = op.getSink();
  if (op.getWhere().empty())
    rows.where = at.filled(rows.sizes, at.truth(true));
  else
    rows.where =
        at.generic({}, {at.empty(rows.sizes, b.getI1Type())}, {rows.all}, {},
                   [&](OpBuilder &b, ValueRange) -> SmallVector<Value> {
                     SmallVector<Value> indices;
                     for (int64_t d = 0; d < type.getRank(); ++d)
                       indices.push_back(linalg::IndexOp::create(b, loc, d));
                     return {Build{b, loc}.inlined(op.getWhere(), indices)};
                   })[0];
  normalise(at, rows, Normaliser::of(Map::Exp), /*stabilise=*/true);

  SmallVector<Value> results = at.generic(
      {rows.scores, rows.where, rows.dead, rows.maximum, rows.sum},
      {at.empty(rows.sizes, rows.type), at.empty(rows.sizes, b.getI1Type())},
      {rows.all, rows.all, rows.row, rows.row, rows.row, rows.all, rows.all},
      {}, [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
        Build in{b, loc};
        Value live = in.andNot(v[1], v[2]);
        Value shifted = arith::SubFOp::create(b, loc, v[0], v[3]);
        Value value, absent;
        if (logarithm) {
          value = arith::SubFOp::create(b, loc, shifted,
                                        math::LogOp::create(b, loc, v[4]));
          absent = in.lowest(rows.type);
        } else {
          value = arith::DivFOp::create(
              b, loc, math::ExpOp::create(b, loc, shifted), v[4]);
          absent = in.real(rows.type, -0.0);
        }
        return {arith::SelectOp::create(b, loc, live, value, absent), live};
      });
  return SmallVector<Value>{at.like(results[0], op.getResult().getType()),
                            at.like(results[1], op.getLive().getType())};
}

} // namespace

FailureOr<SmallVector<Value>> SoftmaxOp::decomposeOperation(OpBuilder &b) {
  return decomposeSoftmax(*this, b, /*logarithm=*/false);
}

FailureOr<SmallVector<Value>> LogSoftmaxOp::decomposeOperation(OpBuilder &b) {
  return decomposeSoftmax(*this, b, /*logarithm=*/true);
}
