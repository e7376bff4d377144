//===- Decompose.cpp - what softmax means, in upstream ops ----------------===//
// Written to be read as the definition, not to be fast: scores are stored
// whole, and each step is one linalg.generic.
#include "dialects/Attn/Decompose.h"
#include "dialects/Attn/SymbolicDims.h"
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

Value decompose::weightOf(Build at, const Normaliser &normaliser, Value score,
                          Value maximum) {
  if (maximum)
    score = arith::SubFOp::create(at.b, at.loc, score, maximum);
  UpstreamArithmetic arithmetic(at.b, at.loc, score.getType());
  return normaliser.weight(arithmetic, score);
}

/// Keys that count and the rows without one, where a score of -inf excludes its
/// key; and the rows' maximum, where it is wanted.
static void excludeLowest(Build at, Rows &rows, const Normaliser &normaliser,
                          bool stabilise) {
  OpBuilder &b = at.b;
  Location loc = at.loc;
  AffineMap rowOnly = AffineMap::getMultiDimIdentityMap(rows.rowSizes.size(),
                                                        at.b.getContext());
  // NaN is no such score.
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
  rows.dead = at.generic({maximum}, {at.empty(rows.rowSizes, b.getI1Type())},
                         {rowOnly, rowOnly}, {},
                         [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
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
  if (stabilise || normaliser.hasThreshold())
    rows.maximum = maximum;
}

/// Rows without a key.
static void findDead(Build at, Rows &rows) {
  Location loc = at.loc;
  rows.dead =
      at.generic({rows.where}, {at.filled(rows.rowSizes, at.truth(true))},
                 {rows.all, rows.row}, rows.keys,
                 [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                   return {Build{b, loc}.andNot(v[1], v[0])};
                 })[0];
}

/// The threshold of each row. Its scores are taken less their maximum first:
/// beside large ones the threshold would be rounded away.
static void findThreshold(Build at, Rows &rows, const Normaliser &normaliser) {
  OpBuilder &b = at.b;
  Location loc = at.loc;
  rows.scores = at.generic(
      {rows.scores, rows.where, rows.dead, rows.maximum},
      {at.empty(rows.sizes, rows.type)},
      {rows.all, rows.all, rows.row, rows.row, rows.all}, {},
      [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
        Build in{b, loc};
        return {in.guarded(in.andNot(v[1], v[2]), in.lowest(rows.type),
                           [&](Build in) -> Value {
                             return arith::SubFOp::create(in.b, in.loc, v[0],
                                                          v[3]);
                           })};
      })[0];
  SmallVector<int64_t> axes(rows.keys.begin(), rows.keys.end());
  Type type = at.empty(rows.rowSizes, rows.type).getType();
  rows.maximum =
      ThresholdOp::create(b, loc, type, normaliser.map, rows.scores, axes);
}

/// What the sums of weights begin with: the sink's weight, or 0.
static Value startOfSums(Build at, Rows &rows, const Normaliser &normaliser) {
  Location loc = at.loc;
  Value start = at.filled(rows.rowSizes, at.real(rows.type, 0));
  if (!rows.sink)
    return start;
  AffineMap rowOnly = AffineMap::getMultiDimIdentityMap(rows.rowSizes.size(),
                                                        at.b.getContext());
  SmallVector<Value> ins{rows.sink};
  if (rows.maximum)
    ins.push_back(rows.maximum);
  SmallVector<AffineMap> maps(ins.size() + 1, rowOnly);
  return at.generic(
      ins, {at.empty(rows.rowSizes, rows.type)}, maps, {},
      [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
        // A sink of -inf adds nothing, also to a row of
        // nothing else, where the difference is NaN.
        Build in{b, loc};
        Value w = weightOf(in, normaliser, v[0], rows.maximum ? v[1] : Value());
        return {arith::SelectOp::create(b, loc,
                                        in.equals(v[0], in.lowest(rows.type)),
                                        in.real(rows.type, 0), w)};
      })[0];
}

void decompose::normalise(Build at, Rows &rows, const Normaliser &normaliser,
                          bool stabilise) {
  Location loc = at.loc;
  if (normaliser.excludesLowest)
    excludeLowest(at, rows, normaliser, stabilise);
  else
    findDead(at, rows);
  if (normaliser.hasThreshold())
    return findThreshold(at, rows, normaliser);

  Value start = startOfSums(at, rows, normaliser);
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

SmallVector<OpFoldResult> decompose::sizesOf(Build at, Value tensor) {
  SmallVector<OpFoldResult> sizes;
  for (auto [axis, size] :
       llvm::enumerate(cast<RankedTensorType>(tensor.getType()).getShape()))
    sizes.push_back(ShapedType::isDynamic(size)
                        ? OpFoldResult(makeExtent(at.b, at.loc, tensor, axis))
                        : at.b.getIndexAttr(size));
  return sizes;
}

namespace {

template <typename Op>
FailureOr<SmallVector<Value>> decomposeSoftmax(Op op, OpBuilder &b,
                                               const Normaliser &normaliser,
                                               bool logarithm) {
  Location loc = op.getLoc();
  Build at{b, loc};
  auto type = cast<RankedTensorType>(op.getInput().getType());
  SmallVector<unsigned> keys(op.getAxes().begin(), op.getAxes().end());
  Rows rows = makeRows(b.getContext(), sizesOf(at, op.getInput()), keys,
                       type.getElementType());
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
  normalise(at, rows, normaliser,
            /*stabilise=*/!normaliser.hasThreshold());

  SmallVector<Value> ins{rows.scores, rows.where, rows.dead, rows.maximum};
  SmallVector<AffineMap> maps{rows.all, rows.all, rows.row, rows.row};
  if (rows.sum) {
    ins.push_back(rows.sum);
    maps.push_back(rows.row);
  }
  maps.append(2, rows.all);
  SmallVector<Value> results = at.generic(
      ins,
      {at.empty(rows.sizes, rows.type), at.empty(rows.sizes, b.getI1Type())},
      maps, {}, [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
        Build in{b, loc};
        Value live = in.andNot(v[1], v[2]);
        Value value, absent;
        if (logarithm) {
          value = arith::SubFOp::create(
              b, loc, arith::SubFOp::create(b, loc, v[0], v[3]),
              math::LogOp::create(b, loc, v[4]));
          absent = in.lowest(rows.type);
        } else {
          value = weightOf(in, normaliser, v[0], v[3]);
          if (rows.sum)
            value = arith::DivFOp::create(b, loc, value, v[4]);
          absent = in.real(rows.type, -0.0);
        }
        return {arith::SelectOp::create(b, loc, live, value, absent), live};
      });
  return SmallVector<Value>{at.like(results[0], op.getResult().getType()),
                            at.like(results[1], op.getLive().getType())};
}

} // namespace

FailureOr<SmallVector<Value>> SoftmaxOp::decomposeOperation(OpBuilder &b) {
  return decomposeSoftmax(*this, b, Normaliser::of(getMap()),
                          /*logarithm=*/false);
}

FailureOr<SmallVector<Value>> LogSoftmaxOp::decomposeOperation(OpBuilder &b) {
  return decomposeSoftmax(*this, b, Normaliser::of(Map::Exp),
                          /*logarithm=*/true);
}

FailureOr<SmallVector<Value>> ThresholdOp::decomposeOperation(OpBuilder &b) {
  Location loc = getLoc();
  Build at{b, loc};
  const Normaliser &normaliser = Normaliser::of(getMap());
  SmallVector<unsigned> keys(getAxes().begin(), getAxes().end());
  Rows rows =
      makeRows(b.getContext(), sizesOf(at, getInput()), keys,
               cast<RankedTensorType>(getInput().getType()).getElementType());
  AffineMap rowOnly =
      AffineMap::getMultiDimIdentityMap(rows.rowSizes.size(), b.getContext());
  Value start = at.filled(rows.rowSizes, at.real(rows.type, -normaliser.one));
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto newton = scf::ForOp::create(
      b, loc, index(0), index(Normaliser::steps), index(1), start,
      [&](OpBuilder &b, Location, Value, ValueRange carried) {
        Build step{b, loc};
        Value none = step.filled(rows.rowSizes, step.real(rows.type, 0));
        SmallVector<Value> sums =
            step.generic({getInput(), carried[0]}, {none, none},
                         {rows.all, rows.row, rows.row, rows.row}, rows.keys,
                         [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                           UpstreamArithmetic a(b, loc, rows.type);
                           Value score = a.add(v[0], a.negate(v[1]));
                           return {a.add(v[2], normaliser.weight(a, score)),
                                   a.add(v[3], normaliser.slope(a, score))};
                         });
        Value next = step.generic(
            {carried[0], sums[0], sums[1]},
            {step.empty(rows.rowSizes, rows.type)},
            {rowOnly, rowOnly, rowOnly, rowOnly}, {},
            [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
              UpstreamArithmetic a(b, loc, rows.type);
              return {Normaliser::nextThreshold(a, v[0], v[1], v[2])};
            })[0];
        scf::YieldOp::create(b, loc, next);
      });
  return SmallVector<Value>{
      at.like(newton.getResult(0), getResult().getType())};
}
