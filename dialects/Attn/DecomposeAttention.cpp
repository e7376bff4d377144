//===- DecomposeAttention.cpp - what attn.attention means, in upstream ops ===//
// Written to be read as the definition, not to be fast: scores are stored
// whole, and each step is one linalg.generic.
#include "dialects/Attn/Decompose.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace heed::attn;
using namespace heed::attn::decompose;

namespace {

/// The parts of attn.attention, each a tensor over batch, query and key dims.
struct Scores {
  AttentionOp op;
  Build at;
  unsigned pairs = op.firstDim(DimKind::Contract); ///< batch, query, key dims
  SmallVector<OpFoldResult> sizes = getAsOpFoldResult(op.getSizes());
  AffineMap all = AffineMap::getMultiDimIdentityMap(pairs, op.getContext());

  SmallVector<Value> indices(OpBuilder &b, unsigned count) {
    SmallVector<Value> list;
    for (unsigned d = 0; d < count; ++d)
      list.push_back(linalg::IndexOp::create(b, at.loc, d));
    return list;
  }
  ArrayRef<OpFoldResult> pairSizes() {
    return ArrayRef<OpFoldResult>(sizes).take_front(pairs);
  }

  /// i1: which keys are live.
  Value where() {
    if (op.getWhere().empty())
      return at.filled(pairSizes(), at.truth(true));
    return at.generic(
        {}, {at.empty(pairSizes(), at.b.getI1Type())}, {all}, {},
        [&](OpBuilder &b, ValueRange) -> SmallVector<Value> {
          return {Build{b, at.loc}.inlined(op.getWhere(), indices(b, pairs))};
        })[0];
  }

  /// Score term \p t, 0 where \p where is false: nothing is read there.
  Value term(unsigned t, Value where) {
    SmallVector<unsigned> contract = op.contractDims(t), reduced;
    // The term's own loops: the pairs', then its contract dims.
    unsigned loops = pairs + contract.size();
    MLIRContext *context = op.getContext();
    SmallVector<AffineExpr> pairExprs, contractExprs;
    SmallVector<OpFoldResult> contractSizes;
    for (unsigned d = 0; d < pairs; ++d)
      pairExprs.push_back(getAffineDimExpr(d, context));
    for (auto [k, d] : llvm::enumerate(contract)) {
      reduced.push_back(pairs + k);
      contractExprs.push_back(getAffineDimExpr(pairs + k, context));
      contractSizes.push_back(sizes[d]);
    }
    AffineMap pairMap = AffineMap::get(loops, 0, pairExprs, context);
    SmallVector<Value> ins{where};
    SmallVector<AffineMap> maps{pairMap};
    if (!contract.empty()) { // tells linalg how far they run
      ins.push_back(at.empty(contractSizes, at.b.getI1Type()));
      maps.push_back(AffineMap::get(loops, 0, contractExprs, context));
    }
    maps.push_back(pairMap);
    Type f32 = at.b.getF32Type();
    return at.generic(
        ins, {at.filled(pairSizes(), at.real(f32, 0))}, maps, reduced,
        [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
          SmallVector<Value> own = indices(b, loops);
          SmallVector<Value> dims(op.numLoopDims());
          std::copy(own.begin(), own.begin() + pairs, dims.begin());
          for (auto [k, d] : llvm::enumerate(contract))
            dims[d] = own[pairs + k];
          return {Build{b, at.loc}.guarded(v[0], v.back(), [&](Build in) {
            SmallVector<Value> elements;
            for (auto [k, operand] : llvm::enumerate(op.term(t)))
              elements.push_back(in.read(op, operand, op.maps(t)[k], dims));
            Value product;
            if (op.pair(t).empty()) {
              product = elements[0];
              for (Value factor : ArrayRef<Value>(elements).drop_front())
                product = arith::MulFOp::create(in.b, in.loc, product, factor);
            } else {
              product = in.inlined(op.pair(t), elements);
            }
            return arith::AddFOp::create(in.b, in.loc, v.back(), product)
                .getResult();
          })};
        })[0];
  }

  /// The scores, -inf where \p where is false.
  Value scores(Value where) {
    SmallVector<Value> ins{where};
    for (unsigned t = 0; t < op.numTerms(); ++t)
      ins.push_back(term(t, where));
    SmallVector<AffineMap> maps(ins.size() + 1, all);
    Type f32 = at.b.getF32Type();
    return at.generic(ins, {at.empty(pairSizes(), f32)}, maps, {},
                      [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                        SmallVector<Value> args = indices(b, pairs);
                        args.append(v.begin() + 1,
                                    v.begin() + 1 + op.numTerms());
                        Build in{b, at.loc};
                        return {in.guarded(v[0], in.lowest(f32), [&](Build in) {
                          return in.inlined(op.getScore(), args);
                        })};
                      })[0];
  }
};

} // namespace

FailureOr<SmallVector<Value>> AttentionOp::decomposeOperation(OpBuilder &b) {
  Location loc = getLoc();
  Build at{b, loc};
  MLIRContext *context = getContext();
  Type f32 = b.getF32Type();
  Scores parts{*this, at};
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
          Value sum;
          for (auto [k, operand] : llvm::enumerate(getValues())) {
            Value element = in.read(*this, operand, valueMap(k), dims);
            sum =
                sum ? arith::AddFOp::create(in.b, loc, sum, element).getResult()
                    : element;
          }
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
