//===- DecomposeAttention.cpp - what attn.attention means, in upstream ops ===//
// Written to be read as the definition, not to be fast: scores are stored
// whole, and each step is one linalg.generic.
#include "dialects/Attn/Scores.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace heed::attn;
using namespace heed::attn::decompose;

namespace {

/// An attention, step by step.
struct Definition {
  AttentionOp op;
  Build at;
  OpBuilder &b = at.b;
  Location loc = at.loc;
  MLIRContext *context = op.getContext();
  Type f32 = b.getF32Type();
  Scores parts{op, at};
  SmallVector<unsigned> keys;
  unsigned rowDims = op.firstDim(DimKind::Key);
  AffineMap rowOnly = AffineMap::getMultiDimIdentityMap(rowDims, context);
  Rows rows;
  // Loops of the value product: batch, query, key, value.
  unsigned loops = parts.pairs + op.numDims(DimKind::Value);
  SmallVector<OpFoldResult> outSizes;
  AffineMap outMap;

  Definition(AttentionOp op, Build at);
  unsigned loopOf(unsigned d) {
    return d < parts.pairs ? d : d - op.numDims(DimKind::Contract);
  }
  SmallVector<Value> weights();
  Value start();
  Value output(ArrayRef<Value> weights);
  Value narrowed(Value output, Type element);
  Value lse();
};

} // namespace

Definition::Definition(AttentionOp attention, Build place)
    : op(attention), at(place) {
  for (unsigned k = 0; k < op.numDims(DimKind::Key); ++k)
    keys.push_back(op.firstDim(DimKind::Key) + k);
  rows = makeRows(context, parts.pairSizes(), keys, f32);
  rows.where = parts.where();
  rows.scores = parts.scores(rows.where);
  if (op.getSink())
    rows.sink =
        at.generic({}, {at.empty(rows.rowSizes, f32)}, {rowOnly}, {},
                   [&](OpBuilder &b, ValueRange) -> SmallVector<Value> {
                     SmallVector<Value> dims = parts.indices(b, rowDims);
                     dims.resize(op.numLoopDims());
                     return {Build{b, loc}.read(op.getSink(), *op.getSinkMap(),
                                                dims, op.getSymbols())};
                   })[0];
  SmallVector<AffineExpr> outExprs;
  for (AffineExpr expr : op.outputMap().getResults()) {
    unsigned d = cast<AffineDimExpr>(expr).getPosition();
    outExprs.push_back(getAffineDimExpr(loopOf(d), context));
    outSizes.push_back(parts.sizes[d]);
  }
  outMap = AffineMap::get(loops, 0, outExprs, context);
}

/// Weights, and which keys count in the end.
SmallVector<Value> Definition::weights() {
  SmallVector<Value> ins{rows.scores, rows.where, rows.dead};
  SmallVector<AffineMap> maps{rows.all, rows.all, rows.row};
  for (Value ofRow : {rows.maximum, rows.sum})
    if (ofRow) {
      ins.push_back(ofRow);
      maps.push_back(rows.row);
    }
  maps.append(2, rows.all);
  return at.generic(
      ins, {at.empty(rows.sizes, f32), at.empty(rows.sizes, b.getI1Type())},
      maps, {}, [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
        Build in{b, loc};
        SmallVector<Value> args = parts.indices(b, parts.pairs);
        Value live = in.andNot(v[1], v[2]);
        Value weight = in.guarded(live, in.real(f32, 0), [&](Build in) {
          Value w = weightOf(in, Normaliser::of(op), v[0],
                             rows.maximum ? v[3] : Value());
          if (op.getDivide())
            w = arith::DivFOp::create(in.b, loc, w, v[rows.maximum ? 4 : 3]);
          if (op.getWeight().empty())
            return w;
          args.push_back(w);
          return in.inlined(op.getWeight(), args);
        });
        return {weight, live};
      });
}

/// What the sums over the keys begin with: 0, or what an empty row is.
Value Definition::start() {
  Value start = at.filled(outSizes, at.real(f32, 0));
  if (!op.getEmpty())
    return start;
  SmallVector<AffineExpr> rowExprs;
  for (unsigned d = 0; d < rowDims; ++d)
    rowExprs.push_back(getAffineDimExpr(
        llvm::find(op.outputMap().getResults(), getAffineDimExpr(d, context)) -
            op.outputMap().getResults().begin(),
        context));
  AffineMap own = AffineMap::getMultiDimIdentityMap(outSizes.size(), context);
  return at.generic(
      {rows.dead}, {at.empty(outSizes, f32)},
      {AffineMap::get(outSizes.size(), 0, rowExprs, context), own}, {},
      [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
        return {arith::SelectOp::create(b, loc, v[0], op.getEmpty(),
                                        Build{b, loc}.real(f32, 0))};
      })[0];
}

/// The sums of the values, times their weights.
Value Definition::output(ArrayRef<Value> weights) {
  SmallVector<AffineExpr> pairExprs;
  for (unsigned d = 0; d < parts.pairs; ++d)
    pairExprs.push_back(getAffineDimExpr(d, context));
  AffineMap pairMap = AffineMap::get(loops, 0, pairExprs, context);
  Value start = this->start();
  return at.generic(
      {weights[0], weights[1]}, {start}, {pairMap, pairMap, outMap}, keys,
      [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
        SmallVector<Value> own = parts.indices(b, loops);
        SmallVector<Value> dims(op.numLoopDims());
        for (unsigned d = 0; d < op.numLoopDims(); ++d)
          if (op.dimKind(d) != DimKind::Contract)
            dims[d] = own[loopOf(d)];
        return {Build{b, loc}.guarded(v[1], v[2], [&](Build in) {
          Value sum = parts.valueAt(in, dims);
          Value product = arith::MulFOp::create(in.b, loc, v[0], sum);
          return arith::AddFOp::create(in.b, loc, v[2], product).getResult();
        })};
      })[0];
}

/// \p output in numbers of type \p element.
Value Definition::narrowed(Value output, Type element) {
  if (element.isF32())
    return output;
  AffineMap id = AffineMap::getMultiDimIdentityMap(outSizes.size(), context);
  return at.generic({output}, {at.empty(outSizes, element)}, {id, id}, {},
                    [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                      return {arith::TruncFOp::create(b, loc, element, v[0])};
                    })[0];
}

Value Definition::lse() {
  SmallVector<Value> ins{rows.sum};
  if (rows.maximum)
    ins.push_back(rows.maximum);
  SmallVector<AffineMap> lseMaps(ins.size() + 1, rowOnly);
  return at.generic(ins, {at.empty(rows.rowSizes, f32)}, lseMaps, {},
                    [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                      Value log = math::LogOp::create(
                          b, loc, v[0]); // -inf of an empty row
                      if (rows.maximum)
                        log = arith::AddFOp::create(b, loc, log, v[1]);
                      return {log};
                    })[0];
}

FailureOr<SmallVector<Value>> AttentionOp::decomposeOperation(OpBuilder &b) {
  Build at{b, getLoc()};
  Definition definition(*this, at);
  normalise(at, definition.rows, Normaliser::of(*this), getStabilise());
  SmallVector<Value> weights = definition.weights();
  auto type = cast<RankedTensorType>(getOutput().getType());
  Value output =
      definition.narrowed(definition.output(weights), type.getElementType());
  SmallVector<Value> results{at.like(output, type)};
  if (getLse())
    results.push_back(at.like(definition.lse(), getLse().getType()));
  if (getWeights())
    results.push_back(at.like(weights[0], getWeights().getType()));
  return results;
}
