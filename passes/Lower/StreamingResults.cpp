//===- StreamingResults.cpp - what streaming attention leaves -------------===//
// The state of all keys, divided by its sum, in the layout of the result; and
// the log-sum-exp where it is one.
#include "passes/Lower/StreamingBuilder.h"
#include "passes/Mutation.h"
#include "passes/Plan/ScoreBound.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace heed;
using namespace heed::streaming;
using attn::DimKind;

Streaming::Total Streaming::total(Ops &o, const TilePlace &at) {
  SmallVector<Value> values = o.read(
      plan.state.getResult(), at.with({at.lane, at.group ? at.group : o.i(0)}));
  Total total{shifted ? values[topElement()] : Value(), values[sumElement()],
              o.f(1), values[sumElement()]};
  Value sink = finish.getSink();
  if (!sink)
    return total;
  SmallVector<Value> dims = place(o, at.batch, query(o, at), Value());
  Value t = o.mul(operand(o, sink, *finish.getSinkMap(), dims), o.f(log4e));
  if (bounded) {
    total.sum = o.add(boundedWeight(o, t), total.sum);
    return total;
  }
  // Merged like a block with one key and no value; the exact exponential, as
  // t - top may be any number.
  Value top = o.larger(total.top, math::RoundEvenOp::create(o.b, o.loc, t));
  if (!mutated("streaming.sink-without-rescale"))
    total.rescale = o.power4(o.sub(total.top, top));
  total.sum =
      o.fma(math::ExpOp::create(o.b, o.loc, o.mul(o.sub(t, top), o.f(2 * ln2))),
            total.sum, total.rescale);
  total.top = top;
  return total;
}

Value Streaming::resultAt(Ops &o, const TilePlace &at, Value d) {
  return plan.rowsOut
             ? o.read1(plan.rowsOut.getResult(), at.with({d, at.lane}))
             : o.read1(plan.divided.getResult(), at.with({at.lane, d}));
}

/// A key whose score is -inf has the weight 0, and 0 times a value that is
/// infinite or NaN is NaN. To look for such keys costs all others; the NaN
/// stays in the accumulators, where it costs a hundredth of a block to see.
/// Then another kernel computes the call again, key by key.
void Streaming::lookForNaN() {
  Value state = plan.state.getResult();
  bool byRow = plan.byRow;
  Ops outside{b, loc};
  Value columns = op.numDims(DimKind::Value)
                      ? size(op.firstDim(DimKind::Value)).value
                      : outside.i(1);
  // A vector of lanes: queries; of a row, neighbours along the value dim.
  int64_t lanes = byRow ? plan.lanes : plan.tile;
  Value steps = outside.ceilDiv(columns, outside.i(byRow ? lanes : plan.group));
  // Sums are NaN where one of their terms is, or where infinities meet: then a
  // call is computed again for nothing.
  plan.sums = func(
      "sums", {"ii"}, 1,
      [](Ops &o, ArrayRef<Value>) -> SmallVector<Value> { return {o.zero()}; });
  update(
      plan.sums, {"rd"}, {steps},
      [&](Ops &o, ArrayRef<Value> args,
          ArrayRef<Value> loops) -> SmallVector<Value> {
        TilePlace at = TilePlace::ofLane(args);
        SmallVector<Value> own{at.lane, loops[0]};
        if (byRow)
          own = {o.i(0), o.mini(o.addi(o.muli(loops[0], o.i(lanes)), at.lane),
                                o.last(columns))};
        SmallVector<Value> values = o.read(state, at.with(own));
        values.resize(plan.group);
        values.push_back(o.read1(plan.sums.getResult(), args));
        return {o.tree(values, [&](Value x, Value y) { return o.add(x, y); })};
      });
  // The greatest of their bits without a sign, where NaN is above all numbers.
  plan.most = func(
      "most", {}, {b.getI32Type()},
      [](Ops &o, ArrayRef<Value>) -> SmallVector<Value> { return {o.i(0)}; });
  update(plan.most, {"rl"}, {outside.i(lanes)},
         [&](Ops &o, ArrayRef<Value> args,
             ArrayRef<Value> loops) -> SmallVector<Value> {
           SmallVector<Value> lane = TilePlace::ofTile(args).with({loops[0]});
           Value size = arith::AndIOp::create(
               o.b, o.loc, o.bits(o.read1(plan.sums.getResult(), lane)),
               o.i(0x7fffffff));
           return {o.maxi(o.read1(plan.most.getResult(), args), size)};
         });
  plan.stands = func(
      "stands", {}, 1, [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
        Value infinity = o.i(0x7f800000);
        return {halide::GiveUpOp::create(
            o.b, o.loc, o.less(infinity, o.read1(plan.most.getResult(), at)))};
      });
}

/// \p x, NaN where the call is to be computed again.
Value Streaming::ifItStands(Ops &o, Value x, const TilePlace &at) {
  return plan.stands ? o.mul(x, o.read1(plan.stands.getResult(), at.with({})))
                     : x;
}

/// What a lane's accumulators are multiplied by.
void Streaming::stageScale() {
  // A thread of a GPU has the sum beside its own accumulators.
  SmallVector<StringRef> own{"ii"};
  if (onGPU())
    own.push_back("dt");
  plan.scale = func(
      "scale", own, 1, [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
        TilePlace at =
            onGPU() ? TilePlace::ofState(args) : TilePlace::ofLane(args);
        auto [top, l, c, keysAlone] = total(o, at);
        c = ifItStands(o, c, at);
        // A row without a live key: the sum over its keys is 0, whatever its
        // sink is. Weights that may add up to 0 leave a sum of absent ones at
        // -0, where it began.
        Value none =
            shifted
                ? arith::CmpFOp::create(o.b, o.loc, arith::CmpFPredicate::OEQ,
                                        keysAlone, o.f(0))
                      .getResult()
                : arith::CmpIOp::create(o.b, o.loc, arith::CmpIPredicate::eq,
                                        o.bits(keysAlone), o.bits(o.zero()))
                      .getResult();
        // A factor of -1 is below any other: 0 or NaN become -1 or NaN.
        Value empty = o.f(shifted ? -1 : 0);
        if (finish.getEmpty())
          empty = o.add(scalars.lookup(finish.getEmpty()), empty);
        if (mutated("streaming.divide-empty-row"))
          return {o.div(c, l)};
        return {o.select(none, empty, o.div(c, l))};
      });
}

/// The tile, divided.
void Streaming::divide() {
  const int64_t group = plan.group;
  Value state = plan.state.getResult();
  plan.divided =
      func("tile", {"ii", "d"}, 1,
           [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
             Value d = args[1];
             TilePlace at =
                 TilePlace::ofTile(args.drop_front(2)).atLane(args[0]);
             SmallVector<Value> values =
                 o.read(state, at.with({at.lane, o.floorDiv(d, group)}));
             values.resize(group);
             Value value = halide::MuxOp::create(o.b, o.loc, o.b.getF32Type(),
                                                 o.mod(d, group), values);
             if (!summed)
               return {ifItStands(o, value, at)};
             SmallVector<Value> own{at.lane};
             if (onGPU())
               own.push_back(o.floorDiv(d, group));
             Value factor = o.read1(plan.scale.getResult(), at.with(own));
             Value scaled = o.mul(value, factor);
             if (!shifted)
               return {scaled};
             // A row without a live key: keys that are there with scores of
             // -inf leave 0 times their values in the accumulators, no 0 for
             // inf and NaN.
             Value none = arith::CmpFOp::create(
                 o.b, o.loc, arith::CmpFPredicate::OLT, factor, o.f(0));
             return {o.select(none, o.f(0), scaled)};
           });
}

/// The tile, transposed back: a row's value dims side by side.
void Streaming::turnRows() {
  Ops outside{b, loc};
  Value last = outside.last(
      outside.alignTo(size(op.firstDim(DimKind::Value)), plan.group));
  plan.rowsOut = turned("rows_out", {"d", "ii"}, plan.rowsOutSteps,
                        [&](Ops &o, Value d, Value lane, const TilePlace &at) {
                          return o.read1(plan.divided.getResult(),
                                         at.with({lane, o.mini(d, last)}));
                        });
}

/// A result: one var per axis, innermost first. \p map says which loop dim each
/// axis is, \p valueAt what stands at them.
halide::FuncOp
Streaming::result(StringRef name, Type element, AffineMap map,
                  llvm::function_ref<Value(Ops &, ArrayRef<Value>)> valueAt) {
  unsigned rank = map.getNumResults();
  SmallVector<std::string> names;
  for (unsigned axis = rank; axis-- > 0;)
    names.push_back(heed::format("d{}", axis));
  SmallVector<StringRef> vars(names.begin(), names.end());
  return halide::FuncOp::create(
      b, loc, name, vars, element,
      [&](OpBuilder &inner, Location where,
          ValueRange args) -> SmallVector<Value> {
        Ops o{inner, where};
        SmallVector<Value> dims(numDims, o.i(0));
        for (auto [axis, expr] : llvm::enumerate(map.getResults()))
          dims[cast<AffineDimExpr>(expr).getPosition()] = args[rank - 1 - axis];
        Value value = valueAt(o, dims);
        if (!element.isF32())
          value = arith::TruncFOp::create(inner, where, element, value);
        return {value};
      });
}

/// \p value. What a block of a GPU has in shared memory before the loop over
/// keys libHalide takes for dead behind its last use in a turn of the loop, and
/// gives its place to others: it is read behind the loop, too, under a
/// condition that is never met.
Value Streaming::withQueriesKept(Ops &o, Value value, const TilePlace &at) {
  Value lane = halide::UnboundedOp::create(
      o.b, o.loc,
      arith::SIToFPOp::create(o.b, o.loc, o.b.getF32Type(), at.lane));
  SmallVector<Value> kept;
  for (StreamingQuery &q : plan.queryFuncs) {
    SmallVector<Value> own{at.lane};
    own.append(q.contract.size(), o.i(0));
    kept.push_back(o.read1(q.func.getResult(), at.with(own)));
  }
  if (kept.empty())
    return value;
  // Of two selects under one condition one would go.
  Value all = o.tree(kept, [&](Value x, Value y) { return o.add(x, y); });
  return o.select(o.greater(o.f(0), lane), all, value);
}

/// Division, and the output in its own layout.
StreamingResults Streaming::results() {
  // Where scores are bounded no key is infinite, nor any value.
  if (normaliser.excludesLowest && !plan.careful && !bounded &&
      !mutated("streaming.never-gives-up"))
    lookForNaN();
  if (summed)
    stageScale();
  divide();
  if (op.numDims(DimKind::Value) == 1 && !plan.byRow && !onGPU())
    turnRows();
  if (finish.getLse() && !finish.getLse().use_empty())
    return resultsWithLse();
  AffineMap map = streamed.outputMap();
  plan.output = result(
      "o",
      cast<RankedTensorType>(finish.getOutput().getType()).getElementType(),
      map, [&](Ops &o, ArrayRef<Value> dims) {
        Value i = dims[op.firstDim(DimKind::Query)];
        Value d = op.numDims(DimKind::Value) ? dims[op.firstDim(DimKind::Value)]
                                             : o.i(0);
        SmallVector<Value> batch(llvm::reverse(dims.take_front(batchDims)));
        TilePlace at;
        at.tile = o.floorDiv(i, plan.tile);
        at.lane = o.mod(i, plan.tile);
        at.batch = batch;
        Value value = resultAt(o, at, d);
        return onGPU() && !plan.bySplit ? withQueriesKept(o, value, at) : value;
      });
  plan.batchVars.resize(batchDims);
  for (auto [axis, expr] : llvm::enumerate(map.getResults())) {
    unsigned dim = cast<AffineDimExpr>(expr).getPosition();
    std::string var = heed::format("d{}", axis);
    if (dim < batchDims)
      plan.batchVars[dim] = var;
    else
      (op.dimKind(dim) == DimKind::Query ? plan.queryVar : plan.valueVar) = var;
    Extent extent = size(dim);
    if (op.dimKind(dim) == DimKind::Value)
      plan.values = extent;
  }
  return {plan.output, {}};
}

/// The log-sum-exp of a lane.
void Streaming::stageLse() {
  plan.lse = func(
      "lse", {"ii"}, 1, [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
        auto [top, l, c, keysAlone] = total(o, TilePlace::ofLane(at));
        // Of no key the sum is -0.
        Value offset =
            bounded ? o.f(-mostOfBoundedScore * ln2) : o.mul(top, o.f(2 * ln2));
        Value sum = bounded ? o.add(l, o.f(0)) : l;
        Value log = o.add(math::LogOp::create(o.b, o.loc, sum), offset);
        Value isNaN =
            arith::CmpFOp::create(o.b, o.loc, arith::CmpFPredicate::UNO, l, l);
        return {o.select(isNaN, l, log)};
      });
}

/// A tile's rows with their log-sum-exp behind them.
void Streaming::writeRowsWithLse(Value columns) {
  SmallVector<std::string> names{"column", "i"};
  for (unsigned k = batchDims; k-- > 0;)
    names.push_back(heed::format("b{}", k));
  plan.batchVars.assign(llvm::reverse(ArrayRef(names).drop_front(2)).begin(),
                        llvm::reverse(ArrayRef(names).drop_front(2)).end());
  plan.queryVar = "i";
  plan.valueVar = "column";
  if (op.numDims(DimKind::Value) == 1)
    plan.values = size(op.firstDim(DimKind::Value));
  SmallVector<StringRef> vars(names.begin(), names.end());
  plan.output = halide::FuncOp::create(
      b, loc, "rows", vars, b.getF32Type(),
      [&](OpBuilder &inner, Location where,
          ValueRange args) -> SmallVector<Value> {
        Ops o{inner, where};
        Value column = args[0], i = args[1];
        SmallVector<Value> batch(args.drop_front(2));
        TilePlace at;
        at.lane = o.mod(i, plan.tile);
        at.tile = o.floorDiv(i, plan.tile);
        at.batch = batch;
        return {o.select(o.less(column, columns),
                         resultAt(o, at, o.mini(column, o.last(columns))),
                         o.read1(plan.lse.getResult(), at.with({at.lane})))};
      });
}

/// A tile writes its rows with their log-sum-exp behind them, in a func of its
/// own; the results are read out of it. Halide computes no tile for two outputs
/// at once.
StreamingResults Streaming::resultsWithLse() {
  stageLse();
  unsigned queryDim = op.firstDim(DimKind::Query),
           valueDim = op.firstDim(DimKind::Value);
  bool hasValueDim = op.numDims(DimKind::Value) == 1;
  Value columns = hasValueDim ? size(valueDim).value : Ops{b, loc}.i(1);
  writeRowsWithLse(columns);
  auto read = [&](Ops &o, Value column, ArrayRef<Value> dims) {
    SmallVector<Value> at{column, dims[queryDim]};
    llvm::append_range(at, llvm::reverse(dims.take_front(batchDims)));
    return o.read1(plan.output.getResult(), at);
  };
  StreamingResults results;
  if (!finish.getOutput().use_empty())
    results.output = result(
        "o",
        cast<RankedTensorType>(finish.getOutput().getType()).getElementType(),
        streamed.outputMap(), [&](Ops &o, ArrayRef<Value> dims) {
          return read(o, hasValueDim ? dims[valueDim] : o.i(0), dims);
        });
  // Its axes are the batch and the query.
  AffineMap rowDims =
      AffineMap::getMultiDimIdentityMap(numDims, op.getContext())
          .getMajorSubMap(batchDims + 1);
  results.lse =
      result("l", b.getF32Type(), rowDims, [&](Ops &o, ArrayRef<Value> dims) {
        return read(o, columns, dims);
      });
  return results;
}
