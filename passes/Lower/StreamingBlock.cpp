//===- StreamingBlock.cpp - a block of keys in streaming attention --------===//
#include "passes/Lower/StreamingBuilder.h"
#include "passes/Mutation.h"
#include "passes/Plan/AttentionPlan.h"
#include "passes/Plan/ScoreBound.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace heed;
using namespace heed::streaming;
using attn::DimKind;

Value Streaming::key(Ops &o, const StreamingStage &stage, const TilePlace &at) {
  Value jj = at.key;
  if (stage.places > 1)
    jj =
        o.addi(o.muli(o.mod(jj, stage.places), o.i(stage.block / stage.places)),
               o.floorDiv(jj, stage.places));
  Value row = o.addi(firstRow(o, stage, at.block), jj);
  if (!stage.partial)
    return keyOf(o, stage, row);
  // libHalide makes min(x + 8, n - 1) a min(x + 9, n) - 1, and LLVM then
  // computes each place of a GPU's array in five instructions instead of one.
  Value last = onGPU() ? o.opaqueLast(stage.count) : o.last(stage.count);
  return keyOf(o, stage, o.mini(row, last));
}

Value Streaming::live(Ops &o, const StreamingStage &stage,
                      const TilePlace &at) {
  if (!stage.partial)
    return Value();
  Value number = o.addi(firstRow(o, stage, at.block), at.key);
  Value inside = mutated("streaming.one-key-more")
                     ? o.atMost(number, stage.count)
                     : o.less(number, stage.count);
  if (op.getWhere().empty() || mutated("streaming.forget-mask"))
    return inside;
  // Of places behind the end nothing is kept: a mask that only compares may be
  // asked of them, too, which leaves a GPU's registers to others.
  bool anywhere = onGPU() && stage.places == 1 && comparesOnly(op.getWhere());
  Value i = anywhere ? o.addi(o.muli(at.tile, o.i(plan.tile)), at.lane)
                     : query(o, at),
        j = anywhere ? keyOf(o, stage, number) : key(o, stage, at);
  return o.both(inside, region(o, op.getWhere(), at.batch, i, j, {}));
}

/// -1 where weights are not negative: the bits of any weight are above its
/// bits, those of NaN too, but those of -0 (see weightOf). Others are marked by
/// a NaN that no operation makes. Both are comparisons of integers; of one by
/// order a select of a sum of products becomes one masked instruction, by
/// equality short causal calls take a fifth longer.
Value Streaming::absentWeight(Ops &o) {
  return anySign ? o.real(o.i(-1)) : o.f(-1);
}
Value Streaming::isLive(Ops &o, Value p) {
  if (anySign)
    return arith::CmpIOp::create(o.b, o.loc, arith::CmpIPredicate::ne,
                                 o.bits(p), o.i(-1));
  return o.less(o.bits(absentWeight(o)), o.bits(p));
}

bool streaming::isDear(Region &where) {
  constexpr unsigned most = 8;
  unsigned operations = 0;
  where.walk([&](Operation *inner) {
    bool divides =
        isa<arith::DivSIOp, arith::FloorDivSIOp, arith::RemSIOp>(inner);
    bool free = inner->hasTrait<OpTrait::ConstantLike>() ||
                inner->hasTrait<OpTrait::IsTerminator>();
    operations += divides ? most : !free;
  });
  return operations > most;
}

/// Whether the key of score \p s is there; null where all are. A score of -inf
/// alone is below every finite number. Asked of every masked block, the
/// comparison made LLVM spill in the loops of full ones.
Value Streaming::present(Ops &o, const StreamingStage &stage, Value s,
                         const TilePlace &at) {
  bool isMarked = marked && stage.partial && stage.scores;
  Value seen = isMarked ? Value() : live(o, stage, at);
  if (!plan.careful && !isMarked)
    return seen;
  return o.both(seen,
                arith::CmpFOp::create(o.b, o.loc, arith::CmpFPredicate::UGE, s,
                                      o.f(lowest)));
}

namespace {

/// Weights in the ops of a kernel. The exponential takes scores in the domain.
struct KernelArithmetic : attn::WeightArithmetic {
  KernelArithmetic(Ops &o, bool shifted, const halide::Target &target)
      : o(o), shifted(shifted), target(target) {}
  Value real(double value) override { return o.f(value); }
  Value negate(Value x) override { return o.sub(o.f(0), x); }
  Value add(Value x, Value y) override { return o.add(x, y); }
  Value multiply(Value x, Value y) override { return o.mul(x, y); }
  Value divide(Value x, Value y) override { return o.div(x, y); }
  Value larger(Value x, Value y) override {
    return arith::MaximumFOp::create(o.b, o.loc, x, y);
  }
  Value exp(Value x) override {
    return shifted ? o.exp4(x, target) : o.anyExp2(x);
  }
  Value unlessBelow0(Value x, Value y) override {
    return o.select(o.greater(o.f(0), x), o.f(0), y);
  }

  Ops &o;
  bool shifted;
  const halide::Target &target;
};

} // namespace

/// Times 2^mostOfBoundedScore: no weight is below 1, so that of small values
/// nothing is lost; the sum has the same factor.
Value Streaming::boundedWeight(Ops &o, Value score) {
  return o.biasedExp4(score, mostOfBoundedScore);
}

Value Streaming::weightOf(Ops &o, Value s, Value top) {
  if (bounded)
    return boundedWeight(o, s);
  KernelArithmetic arithmetic(o, shifted, plan.target);
  Value weight = normaliser.weight(arithmetic, shifted ? o.sub(s, top) : s);
  // A score of -0 may be a weight of -0, which is 0 where absent keys are told
  // from others: beside a mask, and where a table has rows of no key.
  bool maybeMinusZero = (plan.masked || hasTableValue()) && !anySign &&
                        !normaliser.takesExponential;
  return maybeMinusZero ? o.add(weight, o.f(0)) : weight;
}

/// S: groups of scores, their maximum, and that of the block, rounded.
void Streaming::stageScores(StreamingStage &stage) {
  const int64_t group = plan.keyGroup;
  // What is more than a product stands apart, lest the maximum be one of as
  // many copies of it.
  // A score that chooses by i and j is not: of one read under a condition
  // Halide takes the tile's number from the condition and stores beyond it.
  if (!factor && !scoreChooses())
    stage.pairs =
        func(stage.name("x"), {"ii", "y", "jt", "kb"}, 1,
             [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
               return {scoreInGroup(o, stage, TilePlace::ofElement(at))};
             });
  // S: a group of scores and their maximum, in their domain.
  stage.scores =
      func(stage.name("s"), {"ii", "jt", "kb"}, group + shifted,
           [&](Ops &o, ArrayRef<Value> args) {
             TilePlace at = TilePlace::ofGroup(args);
             SmallVector<Value> values;
             for (int64_t y = 0; y < group; ++y) {
               at.inGroup = o.i(y);
               values.push_back(
                   stage.pairs ? o.read1(stage.pairs.getResult(), at.element())
                               : scoreInGroup(o, stage, at));
             }
             if (shifted)
               values.push_back(o.tree(values, [&](Value x, Value y) {
                 return o.larger(x, y, plan.target);
               }));
             return values;
           });
  if (!shifted)
    return;
  if (onGPU())
    stage.groupTops = lastOfGroup(stage, "tops", stage.scores);
  stage.top = func(stage.name("top"), {"ii", "kb"}, 1,
                   [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
                     return {o.f(lowest)};
                   });
  update(stage.top, {"rg"}, {stage.groups},
         [&](Ops &o, ArrayRef<Value> args,
             ArrayRef<Value> loops) -> SmallVector<Value> {
           TilePlace at = TilePlace::ofRow(args);
           at.group = loops[0];
           Value tops =
               onGPU() ? stage.groupTops.getResult() : stage.scores.getResult();
           return {o.larger(o.read1(stage.top.getResult(), args),
                            o.read(tops, at.inGroups()).back(), plan.target)};
         });
  stage.rounded = func(stage.name("m"), {"ii", "kb"}, 1,
                       [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
                         return {math::RoundEvenOp::create(
                             o.b, o.loc, o.read1(stage.top.getResult(), at))};
                       });
}

/// The score of a place, of a group's scores where these stand.
Value Streaming::storedScore(Ops &o, StreamingStage &stage,
                             const TilePlace &at) {
  if (!stage.scores)
    return scoreAt(o, stage, at);
  const int64_t group = plan.keyGroup;
  SmallVector<Value> values =
      o.read(stage.scores.getResult(),
             at.with({at.lane, o.floorDiv(at.key, group), at.block}));
  values.resize(group);
  return halide::MuxOp::create(o.b, o.loc, o.b.getF32Type(),
                               o.mod(at.key, group), values);
}

Streaming::Weight Streaming::weightAt(Ops &o, StreamingStage &stage,
                                      Value score, const TilePlace &at) {
  Value p = weightOf(o, score,
                     shifted ? o.read1(stage.rounded.getResult(), at.row())
                             : Value());
  Value w = p;
  if (!op.getWeight().empty())
    w = region(o, op.getWeight(), at.batch, query(o, at), key(o, stage, at),
               {p});
  if (anySign && (stage.partial || hasTableValue()))
    w = o.select(
        arith::CmpFOp::create(o.b, o.loc, arith::CmpFPredicate::UNO, w, w),
        o.f(std::numeric_limits<double>::quiet_NaN()), w);
  Value seen = present(o, stage, score, at);
  return {o.select(seen, w, absentWeight(o)), p, seen};
}

/// P: weights, and their sum over the block.
void Streaming::stageWeights(StreamingStage &stage) {
  const int64_t group = plan.keyGroup;
  if (onGPU()) {
    stageOwnWeights(stage);
  } else {
    // With a factor after the normaliser the sum still wants the weight itself.
    bool both = summed && !op.getWeight().empty();
    stage.weights =
        func(stage.name("p"), {"ii", "jj", "kb"}, 1 + both,
             [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
               TilePlace at = TilePlace::ofPair(args);
               Weight weight =
                   weightAt(o, stage, storedScore(o, stage, at), at);
               if (both)
                 return {weight.ofProduct, weight.ofSum};
               return {weight.ofProduct};
             });
  }
  if (!summed)
    return;
  Value weights = stage.weights.getResult();
  stage.sum = func(stage.name("l"), {"ii", "kb"}, 1,
                   [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
                     return {o.zero()};
                   });
  update(stage.sum, {"rg"}, {stage.groups},
         [&](Ops &o, ArrayRef<Value> args,
             ArrayRef<Value> loops) -> SmallVector<Value> {
           TilePlace at = TilePlace::ofRow(args);
           Value state = o.read1(stage.sum.getResult(), args);
           at.group = loops[0];
           if (onGPU())
             return {o.sum(
                 state, o.read1(stage.groupSums.getResult(), at.inGroups()))};
           SmallVector<Value> values;
           for (int64_t y = 0; y < group; ++y) {
             at.key = o.addi(o.muli(loops[0], o.i(group)), o.i(y));
             SmallVector<Value> p = o.read(weights, at.pair());
             values.push_back(stage.partial ? o.select(isLive(o, p.front()),
                                                       p.back(), o.zero())
                                            : p.back());
           }
           return {o.sum(state, o.tree(values, [&](Value x, Value y) {
             return o.sum(x, y);
           }))};
         });
}

Value Streaming::valueAt(Ops &o, const TilePlace &at, Value j, Value d) {
  SmallVector<Value> dims = place(o, at.batch, query(o, at), j);
  if (d)
    dims[op.firstDim(DimKind::Value)] = d;
  dims = ofGroup(o, dims, at.batch);
  SmallVector<Value> values;
  for (auto [number, tensor] : llvm::enumerate(op.getValues()))
    if (!isTable(op.valueMap(number)))
      values.push_back(operand(o, tensor, op.valueMap(number), dims));
  return o.tree(values, [&](Value x, Value y) { return o.add(x, y); });
}

/// PV(ii, dd, dt, kb, ...): the block's part of `group` value dims.
void Streaming::stageProducts(StreamingStage &stage) {
  stage.products = func(stage.name("pv"), {"ii", "dd", "dt", "kb"}, 1,
                        [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
                          return {o.zero()};
                        });
  SmallVector<AffineMap> plainMaps;
  for (unsigned value = 0; value < op.getValues().size(); ++value)
    if (isTable(op.valueMap(value)))
      stageTableValue(stage, value);
    else
      plainMaps.push_back(op.valueMap(value));
  stage.plainValues = !plainMaps.empty();
  stage.pairedValues = readsPairs(plainMaps);
  if (stage.plainValues)
    addValues(stage);
  addTableValues(stage);
}

/// The place's number inside the value dim; null without one.
Value Streaming::valueDim(Ops &o, const TilePlace &at) {
  if (op.numDims(DimKind::Value) == 0)
    return Value();
  Value d = o.addi(o.muli(at.group, o.i(plan.group)), at.inGroup);
  Extent extent = size(op.firstDim(DimKind::Value));
  return extent.fixed && *extent.fixed % plan.group == 0
             ? d
             : o.mini(d, o.last(extent.value));
}

void Streaming::addValues(StreamingStage &stage) {
  Value weights = stage.weights.getResult();
  bool absent = stage.partial && plan.masked;
  update(stage.products, {"rj"}, {stage.present},
         [&](Ops &o, ArrayRef<Value> args,
             ArrayRef<Value> loops) -> SmallVector<Value> {
           TilePlace at = TilePlace::ofElement(args).atKey(loops[0]);
           Value p = o.read1(weights, at.pair());
           Value j = absent
                         ? key(o, stage, at)
                         : keyOf(o, stage,
                                 o.addi(firstRow(o, stage, at.block), at.key));
           Value v =
               stage.sharedValues
                   ? o.read1(stage.sharedValues->func.getResult(),
                             at.with({at.inGroup, at.group, at.key, at.block}))
                   : valueAt(o, at, j, valueDim(o, at));
           Value state = o.read1(stage.products.getResult(), args);
           Value next = o.fma(state, p, v);
           return {absent && !mutated("streaming.add-absent-values")
                       ? o.select(isLive(o, p), next, state)
                       : next};
         });
}

SmallVector<Value> Streaming::merged(Ops &o, ArrayRef<Value> old,
                                     ArrayRef<Value> accumulators, Value here,
                                     Value sum) {
  Value top, c0, c1;
  if (shifted) {
    Value before = old[topElement()];
    top = o.larger(before, here, plan.target);
    c0 = o.power4(o.sub(before, top), plan.target);
    c1 = o.power4(o.sub(here, top), plan.target);
  }
  auto merge = [&](Value x, Value y) -> Value {
    if (shifted && mutated("streaming.forget-rescale"))
      return o.fma(x, y, c1);
    return shifted ? o.fma(o.mul(x, c0), y, c1) : o.add(x, y);
  };
  SmallVector<Value> values;
  for (auto [x, y] : llvm::zip(old, accumulators))
    values.push_back(merge(x, y));
  if (shifted)
    values.push_back(top);
  if (summed)
    values.push_back(merge(old[sumElement()], sum));
  return values;
}

Streaming::Part Streaming::partOf(Ops &o, StreamingStage &stage,
                                  const TilePlace &at) {
  Part part;
  for (int64_t y = 0; y < plan.group; ++y)
    part.accumulators.push_back(
        o.read1(stage.products.getResult(),
                at.with({at.lane, o.i(y), at.group, at.block})));
  if (shifted)
    part.top = o.read1(stage.rounded.getResult(), at.row());
  if (summed)
    part.sum = o.read1(stage.sum.getResult(), at.row());
  return part;
}

/// The merge of a block into the state.
void Streaming::stageMerge(StreamingStage &stage) {
  Value state = plan.state.getResult();
  std::string loop = onGPU() ? "rk" + stage.suffix : "rk";
  stage.update =
      update(plan.state, {loop}, {stage.blocks},
             [&](Ops &o, ArrayRef<Value> args, ArrayRef<Value> loops) {
               auto [accumulators, top, sum] =
                   partOf(o, stage, TilePlace::ofState(args).inBlock(loops[0]));
               return merged(o, o.read(state, args), accumulators, top, sum);
             });
}

/// The state before all full blocks: of no key, or of those that are in none.
void Streaming::beginState() {
  plan.state = func("st", {"ii", "dt"}, plan.group + shifted + summed,
                    [&](Ops &o, ArrayRef<Value> at) {
                      SmallVector<Value> values = initialState(o);
                      if (!plan.begins)
                        return values;
                      auto [accumulators, top, sum] =
                          partOf(o, plan.stages.front(),
                                 TilePlace::ofState(at).inBlock(o.i(0)));
                      for (auto [value, sum] : llvm::zip(values, accumulators))
                        value = o.add(value, sum);
                      if (shifted)
                        values[topElement()] = top;
                      if (summed)
                        values[sumElement()] = o.add(values[sumElement()], sum);
                      return values;
                    });
}

/// Whether there are blocks of keys that are all present.
bool Streaming::anyFull() {
  if (onGPU())
    return false;
  return !plan.masked || (mask && mask->anyFull() && !plan.careful);
}

/// Whether the place's tile reaches its block; null without a mask.
Value Streaming::visited(Ops &o, const StreamingStage &stage,
                         const TilePlace &at) {
  if (!mask)
    return Value();
  SmallVector<Value> batch(llvm::reverse(at.batch));
  MaskedKeys masked{stage.segment, stage.begin, stage.whole};
  Value visited =
      !stage.partial ? mask->visitsFull(o.b, at.block, at.tile, batch, masked)
      : stage.besideFull
          ? mask->visitsPartial(o.b, at.block, at.tile, batch, masked)
          : mask->visits(o.b, at.block, at.tile, batch, masked);
  return onGPU() ? o.hidden(visited) : visited;
}

/// Of a masked op only blocks that the tile reaches, each in one of the two
/// updates.
void Streaming::stageWhere(StreamingStage &stage) {
  if (mask)
    where(
        stage.update, [&](Ops &o, ArrayRef<Value> args, ArrayRef<Value> loops) {
          return visited(o, stage, TilePlace::ofState(args).inBlock(loops[0]));
        });
}

LogicalResult Streaming::stage(const KeySegment &segment, bool partial) {
  StreamingStage &stage =
      stageOf(segment, partial, partial ? plan.piece : plan.block);
  stage.besideFull = anyFull() && segment.holds(plan.block);
  cutBlocks(stage);
  for (unsigned term = 0; term < op.numTerms(); ++term)
    stageTerm(stage, term);
  if (onGPU())
    shareValues(stage);
  if (!bounded)
    stageScores(stage);
  stageWeights(stage);
  stageProducts(stage);
  return failure(failedRead);
}

/// Blocks of keys that are all there, blocks that may hold absent ones, and the
/// state that they are merged into. Without a mask the keys after the last full
/// block are not merged: the state begins with them, of the first segment that
/// may have such keys.
LogicalResult Streaming::stageBlocks() {
  bool anyFull = this->anyFull();
  // Then blocks of a known number of keys hold all of them.
  auto anyPartial = [&](const KeySegment &segment) {
    return plan.masked || !segment.count.fixed ||
           *segment.count.fixed % plan.block != 0;
  };
  plan.begins = !plan.masked && llvm::any_of(segments, anyPartial);
  for (bool partial : {plan.begins, !plan.begins})
    for (const KeySegment &segment : segments)
      if ((partial ? anyPartial(segment)
                   : anyFull && segment.holds(plan.block)) &&
          failed(stage(segment, partial)))
        return failure();
  segment = nullptr;
  if (plan.bySplit) {
    splitKeys();
    return failure(failedRead);
  }
  beginState();
  for (StreamingStage &stage :
       MutableArrayRef(plan.stages).drop_front(plan.begins)) {
    stageMerge(stage);
    stageWhere(stage);
  }
  return failure(failedRead);
}
