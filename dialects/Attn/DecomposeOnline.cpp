//===- DecomposeOnline.cpp - what attn.online_attention and attn.finish ---===//
// mean, in upstream ops. Written to be read as the definition, not to be fast:
// a loop over blocks of keys, in which each step is one linalg.generic.
#include "dialects/Attn/Scores.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace heed::attn;
using namespace heed::attn::decompose;

/// Keys of a block where no plan says it.
static constexpr int64_t kBlock = 64;

/// exp(from - to), also where both are the same infinity.
static Value expOfDifference(Build at, Value from, Value to) {
  Value same = at.equals(from, to);
  UpstreamArithmetic a(at.b, at.loc, from.getType());
  Value power = a.exp(a.add(from, a.negate(to)));
  return arith::SelectOp::create(at.b, at.loc, same, a.real(1), power);
}

namespace {

/// The state after a block of keys, of the state before it.
struct BlockOfKeys {
  OnlineAttentionOp op;
  Build at;
  const Normaliser &normaliser = Normaliser::of(op);
  Scores parts;
  Rows rows; ///< of the block's pairs
  AffineMap rowOnly =
      AffineMap::getMultiDimIdentityMap(rows.rowSizes.size(), op.getContext());

  BlockOfKeys(OnlineAttentionOp op, Build at, Value first, Value count)
      : op(op), at(at), parts(op, at, first, count),
        rows(makeRows(op.getContext(), parts.pairSizes(),
                      {op.firstDim(DimKind::Key)}, at.b.getF32Type())) {
    rows.where = parts.where();
    rows.scores = parts.scores(rows.where);
    if (normaliser.excludesLowest)
      rows.where = at.generic(
          {rows.where, rows.scores}, {at.empty(rows.sizes, at.b.getI1Type())},
          {rows.all, rows.all, rows.all}, {},
          [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
            Build in{b, at.loc};
            return {in.andNot(v[0], in.equals(v[1], in.lowest(rows.type)))};
          })[0];
  }

  /// The larger of \p old and the block's.
  Value maximum(Value old) {
    return at.generic(
        {rows.scores, rows.where}, {old}, {rows.all, rows.all, rows.row},
        rows.keys, [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
          Value s = arith::SelectOp::create(b, at.loc, v[1], v[0],
                                            Build{b, at.loc}.lowest(rows.type));
          return {arith::MaximumFOp::create(b, at.loc, v[2], s)};
        })[0];
  }

  /// \p state, a tensor whose first axes are rows, for the maximum \p now
  /// instead of \p old.
  Value rescaled(Value state, Value old, Value now) {
    unsigned rank = cast<RankedTensorType>(state.getType()).getRank();
    AffineMap id = AffineMap::getMultiDimIdentityMap(rank, op.getContext());
    AffineMap row = id.getMajorSubMap(rows.rowSizes.size());
    return at.generic(
        {state, old, now}, {at.empty(sizesOf(at, state), rows.type)},
        {id, row, row, id}, {},
        [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
          Value scale = expOfDifference(Build{b, at.loc}, v[1], v[2]);
          return {arith::MulFOp::create(b, at.loc, v[0], scale)};
        })[0];
  }

  Value weight(Build in, ValueRange v) {
    return weightOf(in, normaliser, v[0], rows.maximum ? v[2] : Value());
  }
  /// Scores, which are live and, where there is one, the maximum; and the maps
  /// of these and of a result.
  std::pair<SmallVector<Value>, SmallVector<AffineMap>>
  operands(ArrayRef<AffineMap> results) {
    SmallVector<Value> ins{rows.scores, rows.where};
    SmallVector<AffineMap> maps{rows.all, rows.all};
    if (rows.maximum) {
      ins.push_back(rows.maximum);
      maps.push_back(rows.row);
    }
    llvm::append_range(maps, results);
    return {ins, maps};
  }

  /// \p old and the sum of the block's weights. A weight of -0 counts as 0.
  Value sum(Value old) {
    auto [ins, maps] = operands({rows.row});
    return at.generic(ins, {old}, maps, rows.keys,
                      [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                        UpstreamArithmetic a(b, at.loc, rows.type);
                        Value w = a.add(weight(Build{b, at.loc}, v), a.real(0));
                        return {arith::SelectOp::create(
                            b, at.loc, v[1], a.add(v.back(), w), v.back())};
                      })[0];
  }

  /// \p old and the block's values by their weights.
  Value accumulator(Value old) {
    auto [ins, maps] = operands({rows.all});
    Value weights = at.generic(
        ins, {at.empty(rows.sizes, rows.type)}, maps, {},
        [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
          SmallVector<Value> args = parts.indices(b, parts.pairs);
          Build in{b, at.loc};
          return {in.guarded(v[1], in.real(rows.type, 0), [&](Build in) {
            Value w = weight(in, v);
            if (op.getWeight().empty())
              return w;
            args.push_back(w);
            return in.inlined(op.getWeight(), args);
          })};
        })[0];
    // Loops: batch, query, key, value.
    MLIRContext *context = op.getContext();
    unsigned loops = parts.pairs + op.numDims(DimKind::Value),
             key = op.firstDim(DimKind::Key);
    AffineMap id = AffineMap::getMultiDimIdentityMap(loops, context);
    AffineMap pair = id.getMajorSubMap(parts.pairs), out = id.dropResult(key);
    return at.generic(
        {weights, rows.where}, {old}, {pair, pair, out}, {key},
        [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
          SmallVector<Value> own = parts.indices(b, loops);
          SmallVector<Value> dims(op.numLoopDims());
          for (unsigned d = 0; d < loops; ++d)
            dims[d < parts.pairs ? d : d + op.numDims(DimKind::Contract)] =
                own[d];
          return {Build{b, at.loc}.guarded(v[1], v[2], [&](Build in) {
            UpstreamArithmetic a(in.b, in.loc, rows.type);
            return a.add(v[2], a.multiply(v[0], parts.valueAt(in, dims)));
          })};
        })[0];
  }
};

} // namespace

FailureOr<SmallVector<Value>>
OnlineAttentionOp::decomposeOperation(OpBuilder &b) {
  Location loc = getLoc();
  Build at{b, loc};
  SmallVector<OpFoldResult> sizes = getAsOpFoldResult(getSizes()), rows, all;
  for (unsigned d = 0; d < numLoopDims(); ++d)
    if (dimKind(d) == DimKind::Batch || dimKind(d) == DimKind::Query)
      rows.push_back(sizes[d]);
  all = rows;
  llvm::append_range(all, ArrayRef(sizes).take_back(numDims(DimKind::Value)));
  Type f32 = b.getF32Type();
  SmallVector<Value> state{at.filled(all, at.real(f32, 0))};
  if (getMaximum())
    state.push_back(at.filled(rows, at.lowest(f32)));
  if (getSum())
    state.push_back(at.filled(rows, at.real(f32, -0.0)));
  int64_t block = plan() && !plan().getPipelines().empty()
                      ? plan().getPipelines().back().getBlock()
                      : kBlock;
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value keys = getSizes()[firstDim(DimKind::Key)], step = index(block);
  auto loop = scf::ForOp::create(
      b, loc, index(0), keys, step, state,
      [&](OpBuilder &b, Location, Value first, ValueRange old) {
        Value left = arith::SubIOp::create(b, loc, keys, first);
        Value count = arith::MinSIOp::create(b, loc, left, step);
        BlockOfKeys keys(*this, Build{b, loc}, first, count);
        SmallVector<Value> now(old);
        if (getMaximum()) {
          now[1] = keys.rows.maximum = keys.maximum(old[1]);
          for (unsigned k : {0, 2})
            now[k] = keys.rescaled(old[k], old[1], now[1]);
        }
        now[0] = keys.accumulator(now[0]);
        if (getSum())
          now.back() = keys.sum(now.back());
        scf::YieldOp::create(b, loc, now);
      });
  SmallVector<Value> results;
  for (auto [value, result] : llvm::zip(loop.getResults(), getResults()))
    results.push_back(at.like(value, result.getType()));
  return results;
}

namespace {

/// The end of the rows of an attention, from the state of all their keys.
struct EndOfRows {
  FinishOp op;
  Build at;
  Location loc = at.loc;
  Type f32 = at.b.getF32Type();
  SmallVector<OpFoldResult> sizes = sizesOf(at, op.getAccumulator());
  unsigned rank = op.getSum()
                      ? cast<RankedTensorType>(op.getSum().getType()).getRank()
                      : sizes.size();
  Value total = op.getSum(), maximum = op.getMaximum();
  Value scale; ///< of the accumulators, or null: 1

  EndOfRows(FinishOp op, Build at) : op(op), at(at) {}
  Value perRow(ValueRange ins, Body body) {
    AffineMap row = AffineMap::getMultiDimIdentityMap(rank, op.getContext());
    SmallVector<AffineMap> maps(ins.size() + 1, row);
    ArrayRef<OpFoldResult> rowSizes = ArrayRef(sizes).take_front(rank);
    return at.generic(ins, {at.empty(rowSizes, f32)}, maps, {}, body)[0];
  }
  void addSink();
  Value output();
  Value lse();
};

} // namespace

/// The sink is one more key, without a value.
void EndOfRows::addSink() {
  Value sink = perRow({}, [&](OpBuilder &b, ValueRange) -> SmallVector<Value> {
    SmallVector<Value> dims;
    for (unsigned d = 0; d < sizes.size(); ++d)
      dims.push_back(d < rank ? linalg::IndexOp::create(b, loc, d).getResult()
                              : Value());
    return {Build{b, loc}.read(op.getSink(), *op.getSinkMap(), dims,
                               op.getSymbols())};
  });
  if (maximum) {
    maximum = perRow({maximum, sink},
                     [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                       return {arith::MaximumFOp::create(b, loc, v[0], v[1])};
                     });
    scale = perRow({op.getMaximum(), maximum},
                   [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
                     return {expOfDifference(Build{b, loc}, v[0], v[1])};
                   });
  }
  SmallVector<Value> ins{total, sink};
  if (maximum)
    ins.append({scale, maximum});
  total = perRow(ins, [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
    Build in{b, loc};
    UpstreamArithmetic a(b, loc, f32);
    // A sink of -inf adds nothing, also to a row of nothing else.
    Value power = a.exp(maximum ? a.add(v[1], a.negate(v[3])) : v[1]);
    power = arith::SelectOp::create(b, loc, in.equals(v[1], in.lowest(f32)),
                                    a.real(0), power);
    return {a.add(maximum ? a.multiply(v[0], v[2]) : v[0], power)};
  });
}

/// The accumulators, divided by the sum, in the output's order.
Value EndOfRows::output() {
  AffineMap all = op.outputMap();
  AffineMap own =
      AffineMap::getMultiDimIdentityMap(all.getNumResults(), op.getContext());
  SmallVector<OpFoldResult> outSizes;
  for (AffineExpr expr : all.getResults())
    outSizes.push_back(sizes[cast<AffineDimExpr>(expr).getPosition()]);
  // An axis of the output is one of the accumulator.
  AffineMap place = inversePermutation(all);
  SmallVector<Value> ins{op.getAccumulator()};
  SmallVector<AffineMap> maps{place};
  for (Value ofRow : {Value(op.getSum()), total, scale})
    if (ofRow) {
      ins.push_back(ofRow);
      maps.push_back(place.getMajorSubMap(rank));
    }
  maps.push_back(own);
  auto type = cast<RankedTensorType>(op.getOutput().getType());
  return at.generic(
      ins, {at.empty(outSizes, type.getElementType())}, maps, {},
      [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
        UpstreamArithmetic a(b, loc, f32);
        Value value = v[0];
        if (op.getSum()) {
          if (scale)
            value = a.multiply(value, v[3]);
          value = a.divide(value, v[2]);
          // -0 is the sum of a row without a live key.
          Value zero = a.real(0), inverse = a.divide(a.real(1), v[1]);
          Value none = arith::AndIOp::create(
              b, loc, Build{b, loc}.equals(v[1], zero),
              arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, inverse,
                                    zero));
          Value empty = op.getEmpty() ? Value(op.getEmpty()) : a.real(0);
          value = arith::SelectOp::create(b, loc, none, empty, value);
        }
        if (!type.getElementType().isF32())
          value = arith::TruncFOp::create(b, loc, type.getElementType(), value);
        return {value};
      })[0];
}

Value EndOfRows::lse() {
  SmallVector<Value> ins{total};
  if (maximum)
    ins.push_back(maximum);
  return perRow(ins, [&](OpBuilder &b, ValueRange v) -> SmallVector<Value> {
    Value log = math::LogOp::create(b, loc, v[0]); // -inf of an empty row
    return {maximum ? arith::AddFOp::create(b, loc, log, v[1]).getResult()
                    : log};
  });
}

FailureOr<SmallVector<Value>> FinishOp::decomposeOperation(OpBuilder &b) {
  Build at{b, getLoc()};
  EndOfRows end(*this, at);
  if (getSink())
    end.addSink();
  SmallVector<Value> results{at.like(end.output(), getOutput().getType())};
  if (getLse())
    results.push_back(at.like(end.lse(), getLse().getType()));
  return results;
}
