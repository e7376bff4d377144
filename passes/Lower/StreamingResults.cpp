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

Streaming::Total Streaming::total(Ops &o, ArrayRef<Value> at) {
  SmallVector<Value> first{at[0], o.i(0)};
  first.append(at.begin() + 1, at.end());
  SmallVector<Value> values = o.read(plan.state.getResult(), first);
  Total total{shifted ? values[topElement()] : Value(), values[sumElement()],
              o.f(1), values[sumElement()]};
  Value sink = finish.getSink();
  if (!sink)
    return total;
  ArrayRef<Value> rest = at.drop_front(1);
  SmallVector<Value> dims =
      place(o, rest.drop_front(), query(o, rest.front(), at[0]), Value());
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

Value Streaming::resultAt(Ops &o, Value lane, Value d, ArrayRef<Value> rest) {
  SmallVector<Value> at{lane, d};
  halide::FuncOp from = plan.divided;
  if (plan.rowsOut) {
    std::swap(at[0], at[1]);
    from = plan.rowsOut;
  }
  llvm::append_range(at, rest);
  return o.read1(from.getResult(), at);
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
  update(plan.sums, {"rd"}, {steps},
         [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
           ArrayRef<Value> at = args.drop_back();
           SmallVector<Value> place{at[0], args.back()};
           if (byRow)
             place = {o.i(0),
                      o.mini(o.addi(o.muli(args.back(), o.i(lanes)), at[0]),
                             o.last(columns))};
           llvm::append_range(place, at.drop_front());
           SmallVector<Value> values = o.read(state, place);
           values.resize(plan.group);
           values.push_back(o.read1(plan.sums.getResult(), at));
           return {
               o.tree(values, [&](Value x, Value y) { return o.add(x, y); })};
         });
  // The greatest of their bits without a sign, where NaN is above all numbers.
  plan.most = func(
      "most", {}, {b.getI32Type()},
      [](Ops &o, ArrayRef<Value>) -> SmallVector<Value> { return {o.i(0)}; });
  update(plan.most, {"rl"}, {outside.i(lanes)},
         [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
           ArrayRef<Value> at = args.drop_back();
           SmallVector<Value> place{args.back()};
           llvm::append_range(place, at);
           Value size = arith::AndIOp::create(
               o.b, o.loc, o.bits(o.read1(plan.sums.getResult(), place)),
               o.i(0x7fffffff));
           return {o.maxi(o.read1(plan.most.getResult(), at), size)};
         });
  plan.stands = func(
      "stands", {}, 1, [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
        Value infinity = o.i(0x7f800000);
        return {halide::GiveUpOp::create(
            o.b, o.loc, o.less(infinity, o.read1(plan.most.getResult(), at)))};
      });
}

/// Division, and the output in its own layout.
StreamingResults Streaming::results() {
  const int64_t group = plan.group;
  Value state = plan.state.getResult();
  // Where scores are bounded no key is infinite, nor any value.
  if (normaliser.excludesLowest && !plan.careful && !bounded &&
      !mutated("streaming.never-gives-up"))
    lookForNaN();
  auto ifItStands = [&](Ops &o, Value x, ArrayRef<Value> rest) {
    return plan.stands ? o.mul(x, o.read1(plan.stands.getResult(), rest)) : x;
  };
  if (summed)
    plan.scale = func(
        "scale", {"ii"}, 1,
        [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
          auto [top, l, c, keysAlone] = total(o, at);
          c = ifItStands(o, c, at.drop_front());
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
  plan.divided =
      func("tile", {"ii", "d"}, 1,
           [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
             ArrayRef<Value> rest = at.drop_front(2);
             SmallVector<Value> place{at[0], o.floorDiv(at[1], group)},
                 row{at[0]};
             place.append(rest.begin(), rest.end());
             row.append(rest.begin(), rest.end());
             SmallVector<Value> values = o.read(state, place);
             values.resize(group);
             Value value = halide::MuxOp::create(o.b, o.loc, o.b.getF32Type(),
                                                 o.mod(at[1], group), values);
             if (!summed)
               return {ifItStands(o, value, rest)};
             Value factor = o.read1(plan.scale.getResult(), row);
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

  if (op.numDims(DimKind::Value) == 1 && !plan.byRow) {
    Ops outside{b, loc};
    Value last = outside.last(
        outside.alignTo(size(op.firstDim(DimKind::Value)), plan.group));
    plan.rowsOut =
        turned("rows_out", {"d", "ii"}, plan.rowsOutSteps,
               [&](Ops &o, Value d, Value lane, ArrayRef<Value> rest) {
                 SmallVector<Value> at{lane, o.mini(d, last)};
                 llvm::append_range(at, rest);
                 return o.read1(plan.divided.getResult(), at);
               });
  }
  if (finish.getLse() && !finish.getLse().use_empty())
    return resultsWithLse();
  AffineMap map = streamed.outputMap();
  auto type = cast<RankedTensorType>(finish.getOutput().getType());
  SmallVector<std::string> names;
  for (int64_t axis = type.getRank(); axis-- > 0;)
    names.push_back(heed::format("d{}", axis));
  SmallVector<StringRef> vars(names.begin(), names.end());
  plan.output = halide::FuncOp::create(
      b, loc, "o", vars, type.getElementType(),
      [&](OpBuilder &inner, Location where,
          ValueRange args) -> SmallVector<Value> {
        Ops o{inner, where};
        SmallVector<Value> dims(numDims, o.i(0));
        for (auto [axis, expr] : llvm::enumerate(map.getResults()))
          dims[cast<AffineDimExpr>(expr).getPosition()] =
              args[type.getRank() - 1 - axis];
        Value i = dims[op.firstDim(DimKind::Query)];
        Value d = op.numDims(DimKind::Value) ? dims[op.firstDim(DimKind::Value)]
                                             : o.i(0);
        SmallVector<Value> rest{o.floorDiv(i, plan.tile)};
        for (unsigned k = batchDims; k-- > 0;)
          rest.push_back(dims[k]);
        Value value = resultAt(o, o.mod(i, plan.tile), d, rest);
        if (!type.getElementType().isF32())
          value = arith::TruncFOp::create(inner, where, type.getElementType(),
                                          value);
        return {value};
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

/// A tile writes its rows with their log-sum-exp behind them, in a func of its
/// own; the results are read out of it. Halide computes no tile for two outputs
/// at once.
StreamingResults Streaming::resultsWithLse() {
  plan.lse = func(
      "lse", {"ii"}, 1, [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
        auto [top, l, c, keysAlone] = total(o, at);
        // Of no key the sum is -0.
        Value offset =
            bounded ? o.f(-mostOfBoundedScore * ln2) : o.mul(top, o.f(2 * ln2));
        Value sum = bounded ? o.add(l, o.f(0)) : l;
        Value log = o.add(math::LogOp::create(o.b, o.loc, sum), offset);
        Value isNaN =
            arith::CmpFOp::create(o.b, o.loc, arith::CmpFPredicate::UNO, l, l);
        return {o.select(isNaN, l, log)};
      });
  unsigned queryDim = op.firstDim(DimKind::Query),
           valueDim = op.firstDim(DimKind::Value);
  bool hasValueDim = op.numDims(DimKind::Value) == 1;
  Value columns = hasValueDim ? size(valueDim).value : Ops{b, loc}.i(1);
  SmallVector<std::string> names{"column", "i"};
  for (unsigned k = batchDims; k-- > 0;)
    names.push_back(heed::format("b{}", k));
  plan.batchVars.assign(llvm::reverse(ArrayRef(names).drop_front(2)).begin(),
                        llvm::reverse(ArrayRef(names).drop_front(2)).end());
  plan.queryVar = "i";
  plan.valueVar = "column";
  if (hasValueDim)
    plan.values = size(valueDim);
  SmallVector<StringRef> vars(names.begin(), names.end());
  plan.output = halide::FuncOp::create(
      b, loc, "rows", vars, b.getF32Type(),
      [&](OpBuilder &inner, Location where,
          ValueRange args) -> SmallVector<Value> {
        Ops o{inner, where};
        SmallVector<Value> row{o.mod(args[1], plan.tile)};
        row.push_back(o.floorDiv(args[1], plan.tile));
        llvm::append_range(row, args.drop_front(2));
        return {o.select(o.less(args[0], columns),
                         resultAt(o, row[0], o.mini(args[0], o.last(columns)),
                                  ArrayRef(row).drop_front()),
                         o.read1(plan.lse.getResult(), row))};
      });
  Value rows = plan.output.getResult();
  auto result = [&](StringRef name, Type element, unsigned rank,
                    llvm::function_ref<unsigned(unsigned)> dimOf, bool isLse) {
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
          for (unsigned axis = 0; axis < rank; ++axis)
            dims[dimOf(axis)] = args[rank - 1 - axis];
          SmallVector<Value> at{isLse         ? columns
                                : hasValueDim ? dims[valueDim]
                                              : o.i(0),
                                dims[queryDim]};
          for (unsigned k = batchDims; k-- > 0;)
            at.push_back(dims[k]);
          Value value = o.read1(rows, at);
          if (!element.isF32())
            value = arith::TruncFOp::create(inner, where, element, value);
          return {value};
        });
  };
  AffineMap map = streamed.outputMap();
  auto type = cast<RankedTensorType>(finish.getOutput().getType());
  StreamingResults results;
  results.output = result(
      "o", type.getElementType(), type.getRank(),
      [&](unsigned axis) {
        return cast<AffineDimExpr>(map.getResult(axis)).getPosition();
      },
      false);
  results.lse = result(
      "l", b.getF32Type(), batchDims + 1, [](unsigned axis) { return axis; },
      true);
  return results;
}
