//===- StreamingRowBlock.cpp - a block of keys of one query ---------------===//
// T, S, P and PV of StreamingRow.cpp.
#include "passes/Lower/StreamingBuilder.h"
#include "passes/Mutation.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace heed;
using namespace heed::streaming;
using attn::DimKind;

/// T(ii, jj, kb, ...): partial sums of as many keys as a vector has lanes, one
/// sum a lane of the last contracted dim. The lanes are a vectorised reduction:
/// libHalide adds up neighbours, in registers, until each key has one number.
void Streaming::rowTerm(StreamingStage &stage, unsigned term) {
  SmallVector<unsigned> contract = op.contractDims(term);
  std::string name = heed::format("{}{}", stage.name("t"), term);
  if (contract.empty())
    return stageTerm(stage, term);
  const int64_t width = plan.lanes;
  const SmallVector<StringRef> vars{"x", "jb", "kb"};
  auto lanes = func(heed::format("{}_lanes", name), vars, 1,
                    [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
                      return {o.zero()};
                    });
  size_t rank = 4 + batchDims;
  Ops outside{b, loc};
  StreamingTerm own = termOf(term);
  SmallVector<Value> extents;
  SmallVector<Extent> sizes;
  for (unsigned c : contract) {
    sizes.push_back(size(c));
    extents.push_back(sizes.back().value);
  }
  Extent last = sizes.back();
  extents.back() =
      last.fixed ? outside.i(llvm::divideCeil(*last.fixed, width))
                 : outside.floorDiv(
                       outside.addi(last.value, outside.i(width - 1)), width);
  sizes.back().fixed =
      last.fixed ? std::optional<int64_t>(llvm::divideCeil(*last.fixed, width))
                 : std::nullopt;
  SmallVector<StringRef> rvars(own.loops.begin(), own.loops.end());
  auto index = [&](Ops &o, ArrayRef<Value> args) {
    return o.addi(o.muli(args.back(), o.i(width)), o.mod(args[0], width));
  };
  halide::UpdateOp sum =
      update(lanes, rvars, extents,
             [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
               ArrayRef<Value> at = args.take_front(rank);
               SmallVector<Value> place(at), reduction(args.drop_front(rank));
               place[0] = o.i(0);
               place[1] =
                   o.addi(o.muli(at[1], o.i(width)), o.floorDiv(at[0], width));
               reduction.back() = index(o, args);
               return {termSum(o, term, o.read1(lanes.getResult(), at),
                               termOperands(o, stage, term, place, reduction))};
             });
  if (!last.fixed || *last.fixed % width)
    sum.fill(b, sum.getWhere(),
             [&](OpBuilder &inner, Location where,
                 ValueRange args) -> SmallVector<Value> {
               Ops o{inner, where};
               return {o.less(index(o, SmallVector<Value>(args)), last.value)};
             });
  auto f = func(name, {"ii", "jj", "kb"}, 1,
                [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
                  return {emptySum(o, contract)};
                });
  update(f, {"rl"}, {outside.i(width)},
         [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
           ArrayRef<Value> at = args.take_front(rank);
           Value lane =
               o.addi(o.muli(o.mod(at[1], width), o.i(width)), args[rank]);
           SmallVector<Value> place{lane, o.floorDiv(at[1], width)};
           place.append(at.begin() + 2, at.end());
           return {o.sum(o.read1(f.getResult(), at),
                         o.read1(lanes.getResult(), place))};
         });
  own.func = f;
  own.lanes = lanes;
  own.contract = sizes;
  stage.terms.push_back(std::move(own));
}

/// S, and the maximum of the block: one a lane, then of these.
void Streaming::rowScores(StreamingStage &stage) {
  stage.scores = func(stage.name("s"), {"ii", "jj", "kb"}, 1,
                      [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
                        return {scoreAt(o, stage, at)};
                      });
  if (!shifted)
    return;
  size_t rank = 3 + batchDims; // ll, kb, ib, batch
  stage.topLanes = func(stage.name("top"), {"ll", "kb"}, 1,
                        [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
                          return {o.f(lowest)};
                        });
  update(stage.topLanes, {"rg"}, {stage.groups},
         [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
           ArrayRef<Value> at = args.take_front(rank);
           SmallVector<Value> place{
               o.i(0), o.addi(o.muli(args[rank], o.i(plan.lanes)), at[0])};
           place.append(at.begin() + 1, at.end());
           return {o.larger(o.read1(stage.topLanes.getResult(), at),
                            o.read1(stage.scores.getResult(), place))};
         });
  stage.rounded = func(
      stage.name("m"), {"ii", "kb"}, 1,
      [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
        SmallVector<Value> values, place(at);
        for (int64_t lane = 0; lane < plan.lanes; ++lane) {
          place[0] = o.i(lane);
          values.push_back(o.read1(stage.topLanes.getResult(), place));
        }
        return {math::RoundEvenOp::create(
            o.b, o.loc,
            o.tree(values, [&](Value x, Value y) { return o.larger(x, y); }))};
      });
}

/// P: tuple (weight[, bits of a live key][, weight before the factor]), and the
/// sum over the block.
void Streaming::rowWeights(StreamingStage &stage) {
  bool both = summed && !op.getWeight().empty();
  stage.weights = func(
      stage.name("p"), {"ii", "jj", "kb"}, 1 + stage.partial + both,
      [&](Ops &o, ArrayRef<Value> at) {
        ArrayRef<Value> rest = at.drop_front(3);
        SmallVector<Value> row{at[0]};
        row.append(at.begin() + 2, at.end());
        Value s = o.read1(stage.scores.getResult(), at);
        Value isLive = present(o, stage, s, at);
        Value p = weightOf(
            o, s, shifted ? o.read1(stage.rounded.getResult(), row) : Value());
        Value w = p;
        if (!op.getWeight().empty())
          w = region(o, op.getWeight(), rest.drop_front(),
                     query(o, rest.front(), at[0]), key(o, stage, at[2], at[1]),
                     {p});
        // Absent ones add -0, which leaves a sum where it began.
        SmallVector<Value> values{o.select(isLive, w, o.zero())};
        if (stage.partial)
          values.push_back(o.real(o.select(isLive, o.i(-1), o.i(0))));
        if (both)
          values.push_back(o.select(isLive, p, o.zero()));
        return values;
      });
  if (!summed)
    return;
  size_t rank = 3 + batchDims;
  stage.sumLanes = func(stage.name("l_lanes"), {"ll", "kb"}, 1,
                        [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
                          return {o.zero()};
                        });
  update(stage.sumLanes, {"rg"}, {stage.groups},
         [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
           ArrayRef<Value> at = args.take_front(rank);
           SmallVector<Value> place{
               o.i(0), o.addi(o.muli(args[rank], o.i(plan.lanes)), at[0])};
           place.append(at.begin() + 1, at.end());
           SmallVector<Value> p = o.read(stage.weights.getResult(), place);
           return {o.sum(o.read1(stage.sumLanes.getResult(), at),
                         both ? p.back() : p[0])};
         });
  stage.sum = func(
      stage.name("l"), {"ii", "kb"}, 1,
      [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
        SmallVector<Value> values, place(at);
        for (int64_t lane = 0; lane < plan.lanes; ++lane) {
          place[0] = o.i(lane);
          values.push_back(o.read1(stage.sumLanes.getResult(), place));
        }
        return {o.tree(values, [&](Value x, Value y) { return o.sum(x, y); })};
      });
}

/// PV(ii, dt, kb, ...): the block's part of the value dims.
void Streaming::rowProducts(StreamingStage &stage) {
  bool hasValueDim = op.numDims(DimKind::Value) == 1;
  stage.products = func(stage.name("pv"), {"ii", "dt", "kb"}, 1,
                        [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
                          return {o.zero()};
                        });
  const int64_t atOnce = stage.block / stage.valueSteps;
  size_t rank = 4 + batchDims;
  Ops outside{b, loc};
  Value steps = outside.i(stage.valueSteps);
  if (stage.partial)
    steps = outside.ceilDiv(outside.muli(stage.groups, outside.i(plan.lanes)),
                            outside.i(atOnce));
  update(stage.products, {"rj"}, {steps},
         [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
           ArrayRef<Value> at = args.take_front(rank), rest = at.drop_front(3);
           Value sum = o.read1(stage.products.getResult(), at);
           for (int64_t y = 0; y < atOnce; ++y) {
             Value jj = o.addi(o.muli(args[rank], o.i(atOnce)), o.i(y));
             SmallVector<Value> place{at[0], jj};
             place.append(at.begin() + 2, at.end());
             SmallVector<Value> p = o.read(stage.weights.getResult(), place);
             Value v = valueAt(o, at[0], key(o, stage, at[2], jj), rest,
                               hasValueDim ? at[1] : Value());
             if (stage.partial && !mutated("streaming.row-of-absent-key"))
               v = o.real(
                   arith::AndIOp::create(o.b, o.loc, o.bits(v), o.bits(p[1])));
             sum = o.fma(sum, p[0], v);
           }
           return {sum};
         });
}
