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

/// Partial sums of as many keys as a vector has lanes, one sum a lane of the
/// last contracted dim.
void Streaming::sumByLanes(StreamingStage &stage, unsigned term,
                           StreamingTerm &own, StringRef name) {
  const int64_t width = plan.lanes;
  const SmallVector<StringRef> vars{"x", "jb", "kb"};
  auto lanes =
      func(name, vars, 1, [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
        return {o.zero()};
      });
  Ops outside{b, loc};
  SmallVector<Value> extents;
  SmallVector<Extent> sizes;
  for (unsigned c : op.contractDims(term)) {
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
  auto index = [&](Ops &o, Value x, Value step) {
    return o.addi(o.muli(step, o.i(width)), o.mod(x, width));
  };
  halide::UpdateOp sum =
      update(lanes, rvars, extents,
             [&](Ops &o, ArrayRef<Value> args,
                 ArrayRef<Value> loops) -> SmallVector<Value> {
               Value x = args[0], keys = args[1];
               TilePlace at = TilePlace::ofTile(args.drop_front(3));
               SmallVector<Value> reduction(loops);
               at.block = args[2];
               at.lane = o.i(0);
               at.key = o.addi(o.muli(keys, o.i(width)), o.floorDiv(x, width));
               reduction.back() = index(o, x, loops.back());
               return {termSum(o, term, o.read1(lanes.getResult(), args),
                               termOperands(o, stage, term, at, reduction))};
             });
  if (!last.fixed || *last.fixed % width)
    where(sum, [&](Ops &o, ArrayRef<Value> args, ArrayRef<Value> loops) {
      return o.less(index(o, args[0], loops.back()), last.value);
    });
  own.lanes = lanes;
  own.contract = sizes;
}

/// T(ii, jj, kb, ...): the sums of sumByLanes. The lanes are a vectorised
/// reduction: libHalide adds up neighbours, in registers, until each key has
/// one number.
void Streaming::rowTerm(StreamingStage &stage, unsigned term) {
  SmallVector<unsigned> contract = op.contractDims(term);
  std::string name = heed::format("{}{}", stage.name("t"), term);
  if (contract.empty())
    return stageTerm(stage, term);
  const int64_t width = plan.lanes;
  StreamingTerm own = termOf(term);
  sumByLanes(stage, term, own, heed::format("{}_lanes", name));
  auto f = func(name, {"ii", "jj", "kb"}, 1,
                [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
                  return {emptySum(o, contract)};
                });
  update(f, {"rl"}, {Ops{b, loc}.i(width)},
         [&](Ops &o, ArrayRef<Value> args,
             ArrayRef<Value> loops) -> SmallVector<Value> {
           TilePlace at = TilePlace::ofPair(args);
           Value x = o.addi(o.muli(o.mod(at.key, width), o.i(width)), loops[0]);
           SmallVector<Value> place =
               at.with({x, o.floorDiv(at.key, width), at.block});
           return {o.sum(o.read1(f.getResult(), args),
                         o.read1(own.lanes.getResult(), place))};
         });
  own.func = f;
  stage.terms.push_back(std::move(own));
}

/// The pair of lane `ll` of a func over (ll, kb) and group \p group of keys.
SmallVector<Value> Streaming::pairOfGroup(Ops &o, ArrayRef<Value> args,
                                          Value group) {
  TilePlace at = TilePlace::ofRow(args);
  return at.with(
      {o.i(0), o.addi(o.muli(group, o.i(plan.lanes)), at.lane), at.block});
}

/// What \p lanes, a func over (ll, kb), has in each lane.
SmallVector<Value> Streaming::allLanes(Ops &o, halide::FuncOp lanes,
                                       ArrayRef<Value> args) {
  TilePlace at = TilePlace::ofRow(args);
  SmallVector<Value> values;
  for (int64_t lane = 0; lane < plan.lanes; ++lane)
    values.push_back(o.read1(lanes.getResult(), at.atLane(o.i(lane)).row()));
  return values;
}

/// S, and the maximum of the block: one a lane, then of these.
void Streaming::rowScores(StreamingStage &stage) {
  stage.scores = func(stage.name("s"), {"ii", "jj", "kb"}, 1,
                      [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
                        return {scoreAt(o, stage, TilePlace::ofPair(at))};
                      });
  if (!shifted)
    return;
  stage.topLanes = func(stage.name("top"), {"ll", "kb"}, 1,
                        [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
                          return {o.f(lowest)};
                        });
  update(stage.topLanes, {"rg"}, {stage.groups},
         [&](Ops &o, ArrayRef<Value> args,
             ArrayRef<Value> loops) -> SmallVector<Value> {
           SmallVector<Value> pair = pairOfGroup(o, args, loops[0]);
           return {o.larger(o.read1(stage.topLanes.getResult(), args),
                            o.read1(stage.scores.getResult(), pair))};
         });
  stage.rounded = func(
      stage.name("m"), {"ii", "kb"}, 1,
      [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
        SmallVector<Value> values = allLanes(o, stage.topLanes, at);
        return {math::RoundEvenOp::create(
            o.b, o.loc,
            o.tree(values, [&](Value x, Value y) { return o.larger(x, y); }))};
      });
}

/// P: tuple (weight[, bits of a live key][, weight before the factor]), and the
/// sum over the block.
void Streaming::rowWeights(StreamingStage &stage) {
  bool both = summed && !op.getWeight().empty();
  stage.weights =
      func(stage.name("p"), {"ii", "jj", "kb"}, 1 + stage.partial + both,
           [&](Ops &o, ArrayRef<Value> args) {
             TilePlace at = TilePlace::ofPair(args);
             Value s = o.read1(stage.scores.getResult(), args);
             Value isLive = present(o, stage, s, at);
             Value p =
                 weightOf(o, s,
                          shifted ? o.read1(stage.rounded.getResult(), at.row())
                                  : Value());
             Value w = p;
             if (!op.getWeight().empty())
               w = region(o, op.getWeight(), at.batch, query(o, at),
                          key(o, stage, at), {p});
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
  stage.sumLanes = func(stage.name("l_lanes"), {"ll", "kb"}, 1,
                        [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
                          return {o.zero()};
                        });
  update(stage.sumLanes, {"rg"}, {stage.groups},
         [&](Ops &o, ArrayRef<Value> args,
             ArrayRef<Value> loops) -> SmallVector<Value> {
           SmallVector<Value> p = o.read(stage.weights.getResult(),
                                         pairOfGroup(o, args, loops[0]));
           return {o.sum(o.read1(stage.sumLanes.getResult(), args),
                         both ? p.back() : p[0])};
         });
  stage.sum = func(
      stage.name("l"), {"ii", "kb"}, 1,
      [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
        SmallVector<Value> values = allLanes(o, stage.sumLanes, at);
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
  Ops outside{b, loc};
  Value steps = outside.i(stage.valueSteps);
  if (stage.partial)
    steps = outside.ceilDiv(outside.muli(stage.groups, outside.i(plan.lanes)),
                            outside.i(atOnce));
  update(stage.products, {"rx", "rj"}, {outside.i(atOnce), steps},
         [&](Ops &o, ArrayRef<Value> args,
             ArrayRef<Value> loops) -> SmallVector<Value> {
           TilePlace at = TilePlace::ofGroup(args);
           at.key = o.addi(o.muli(loops[1], o.i(atOnce)), loops[0]);
           SmallVector<Value> p = o.read(stage.weights.getResult(), at.pair());
           // A group is of one value dim.
           Value v = valueAt(o, at, key(o, stage, at),
                             hasValueDim ? at.group : Value());
           if (stage.partial && !mutated("streaming.row-of-absent-key"))
             v = o.real(
                 arith::AndIOp::create(o.b, o.loc, o.bits(v), o.bits(p[1])));
           return {o.fma(o.read1(stage.products.getResult(), args), p[0], v)};
         });
}
