//===- DecomposeAttention.cpp - what attn.attention means, in upstream ops ===//
// Written to be read as the definition, not to be fast: scores are stored
// whole, and each step is one linalg.generic.
#include "dialects/Attn/Scores.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace heed::attn;
using namespace heed::attn::decompose;

FailureOr<SmallVector<Value>> AttentionOp::decomposeOperation(OpBuilder &b) {
  Location loc = getLoc();
  Build at{b, loc};
  MLIRContext *context = getContext();
  Type f32 = b.getF32Type();
  Scores parts(*this, at);
  SmallVector<unsigned> keys;
  for (unsigned k = 0; k < numDims(DimKind::Key); ++k)
    keys.push_back(firstDim(DimKind::Key) + k);
  Rows rows = makeRows(context, parts.pairSizes(), keys, f32);
  rows.where = parts.where();
  rows.scores = parts.scores(rows.where);
  unsigned rowDims = firstDim(DimKind::Key);
  AffineMap rowOnly = AffineMap::getMultiDimIdentityMap(rowDims, context);
  if (getSink())
    rows.sink =
        at.generic({}, {at.empty(rows.rowSizes, f32)}, {rowOnly}, {},
                   [&](OpBuilder &b, ValueRange) -> SmallVector<Value> {
                     SmallVector<Value> dims = parts.indices(b, rowDims);
                     dims.resize(numLoopDims());
                     return {Build{b, loc}.read(getSink(), *getSinkMap(), dims,
                                                getSymbols())};
                   })[0];
  normalise(at, rows, Normaliser::of(*this), getStabilise());

  // Weights, and which keys count in the end.
  SmallVector<Value> ins{rows.scores, rows.where, rows.dead};
  SmallVector<AffineMap> maps{rows.all, rows.all, rows.row};
  for (Value ofRow : {rows.maximum, rows.sum})
    if (ofRow) {
      ins.push_back(ofRow);
      maps.push_back(rows.row);
    }
  maps.append(2, rows.all);
  SmallVector<Value> weights = at.generic(
      ins, {at.empty(rows.sizes, f32), at.empty(rows.sizes, b.getI1Type())},
      maps, {}, [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
        Build in{b, loc};
        SmallVector<Value> args = parts.indices(b, parts.pairs);
        Value live = in.andNot(v[1], v[2]);
        Value weight = in.guarded(live, in.real(f32, 0), [&](Build in) {
          Value w = weightOf(in, Normaliser::of(*this), v[0],
                             rows.maximum ? v[3] : Value());
          if (getDivide())
            w = arith::DivFOp::create(in.b, loc, w, v[rows.maximum ? 4 : 3]);
          if (getWeight().empty())
            return w;
          args.push_back(w);
          return in.inlined(getWeight(), args);
        });
        return {weight, live};
      });

  // Loops of the value product: batch, query, key, value.
  unsigned loops = parts.pairs + numDims(DimKind::Value);
  SmallVector<AffineExpr> pairExprs, outExprs;
  for (unsigned d = 0; d < parts.pairs; ++d)
    pairExprs.push_back(getAffineDimExpr(d, context));
  SmallVector<OpFoldResult> outSizes;
  auto loopOf = [&](unsigned d) {
    return d < parts.pairs ? d : d - numDims(DimKind::Contract);
  };
  for (AffineExpr expr : outputMap().getResults()) {
    unsigned d = cast<AffineDimExpr>(expr).getPosition();
    outExprs.push_back(getAffineDimExpr(loopOf(d), context));
    outSizes.push_back(parts.sizes[d]);
  }
  AffineMap pairMap = AffineMap::get(loops, 0, pairExprs, context);
  AffineMap outMap = AffineMap::get(loops, 0, outExprs, context);
  Value start = at.filled(outSizes, at.real(f32, 0));
  if (getEmpty()) {
    SmallVector<AffineExpr> rowExprs;
    for (unsigned d = 0; d < rowDims; ++d)
      rowExprs.push_back(getAffineDimExpr(
          llvm::find(outputMap().getResults(), getAffineDimExpr(d, context)) -
              outputMap().getResults().begin(),
          context));
    AffineMap own = AffineMap::getMultiDimIdentityMap(outSizes.size(), context);
    start =
        at.generic({rows.dead}, {at.empty(outSizes, f32)},
                   {AffineMap::get(outSizes.size(), 0, rowExprs, context), own},
                   {}, [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                     return {arith::SelectOp::create(
                         b, loc, v[0], getEmpty(), Build{b, loc}.real(f32, 0))};
                   })[0];
  }
  Value output = at.generic(
      {weights[0], weights[1]}, {start}, {pairMap, pairMap, outMap}, keys,
      [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
        SmallVector<Value> own = parts.indices(b, loops);
        SmallVector<Value> dims(numLoopDims());
        for (unsigned d = 0; d < numLoopDims(); ++d)
          if (dimKind(d) != DimKind::Contract)
            dims[d] = own[loopOf(d)];
        return {Build{b, loc}.guarded(v[1], v[2], [&](Build in) {
          Value sum = parts.valueAt(in, dims);
          Value product = arith::MulFOp::create(in.b, loc, v[0], sum);
          return arith::AddFOp::create(in.b, loc, v[2], product).getResult();
        })};
      })[0];
  auto outType = cast<RankedTensorType>(getOutput().getType());
  if (!outType.getElementType().isF32()) {
    AffineMap id = AffineMap::getMultiDimIdentityMap(outSizes.size(), context);
    output = at.generic(
        {output}, {at.empty(outSizes, outType.getElementType())}, {id, id}, {},
        [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
          return {
              arith::TruncFOp::create(b, loc, outType.getElementType(), v[0])};
        })[0];
  }
  SmallVector<Value> results{at.like(output, outType)};
  if (getLse()) {
    SmallVector<Value> ins{rows.sum};
    if (rows.maximum)
      ins.push_back(rows.maximum);
    SmallVector<AffineMap> lseMaps(ins.size() + 1, rowOnly);
    Value lse = at.generic(
        ins, {at.empty(rows.rowSizes, f32)}, lseMaps, {},
        [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
          Value log = math::LogOp::create(b, loc, v[0]); // -inf of an empty row
          if (rows.maximum)
            log = arith::AddFOp::create(b, loc, log, v[1]);
          return {log};
        })[0];
    results.push_back(at.like(lse, getLse().getType()));
  }
  if (getWeights())
    results.push_back(at.like(weights[0], getWeights().getType()));
  return results;
}
