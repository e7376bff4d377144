//===- StreamingShared.cpp - keys and values of a block on a GPU ----------===//
//
// On a GPU the threads of a block bring what they all read of some keys to
// shared memory: funcs of their own, which the schedule stores there.
#include "passes/Lower/StreamingBuilder.h"
#include "support/Format.h"

using namespace mlir;
using namespace heed;
using namespace heed::streaming;
using attn::DimKind;

/// Whether \p dim is the last of \p tensor, whole and a multiple of four.
bool Streaming::comesByFour(Value tensor, AffineMap map, unsigned dim) {
  int64_t extent = cast<RankedTensorType>(tensor.getType()).getShape().back();
  return map.getNumResults() != 0 && extent > 0 && extent % 4 == 0 &&
         map.getResults().back() == getAffineDimExpr(dim, op.getContext()) &&
         size(dim).fixed == extent;
}

/// K(jj, e.., kb, ...): operands of a term that keys have and queries have not,
/// as a block has them in shared memory.
void Streaming::shareKeys(StreamingStage &stage, unsigned term) {
  unsigned q = op.firstDim(DimKind::Query), k = op.firstDim(DimKind::Key);
  SmallVector<unsigned> contract = op.contractDims(term);
  for (unsigned number = 0; number < op.maps(term).size(); ++number) {
    AffineMap map = op.maps(term)[number];
    if (!map.isFunctionOfDim(k) || map.isFunctionOfDim(q))
      continue;
    unsigned position = positionOf(term, number);
    StreamingShared keys;
    keys.vars.push_back({"jj", stage.block});
    for (unsigned c : contract)
      keys.vars.push_back({heed::format("e{}", c), *size(c).fixed});
    SmallVector<StringRef> names;
    for (auto &[name, extent] : keys.vars)
      names.push_back(name);
    names.push_back("kb");
    keys.func = func(heed::format("{}{}", stage.name("k"), position), names, 1,
                     [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
                       TilePlace at =
                           TilePlace::ofTile(args.drop_front(names.size()));
                       at.key = args[0];
                       at.lane = o.i(0);
                       at.block = args[names.size() - 1];
                       return {termOperand(o, stage, term, number, at,
                                           args.slice(1, contract.size()))};
                     });
    keys.asVectors = contract.size() == 1 &&
                     comesByFour(op.term(term)[number], map, contract.front());
    stage.sharedKeys.push_back({position, std::move(keys)});
  }
}

/// V(dd, dt, jj, kb, ...): values as a block has them in shared memory, if no
/// pair has one of its own.
void Streaming::shareValues(StreamingStage &stage) {
  SmallVector<AffineMap> maps;
  for (unsigned value = 0; value < op.getValues().size(); ++value)
    maps.push_back(op.valueMap(value));
  if (maps.empty() || readsPairs(maps))
    return;
  Extent extent = size(op.firstDim(DimKind::Value));
  stage.sharedValues = StreamingShared{
      func(stage.name("v"), {"dd", "dt", "jj", "kb"}, 1,
           [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
             TilePlace at = TilePlace::ofTile(args.drop_front(4));
             at.inGroup = args[0];
             at.group = args[1];
             at.key = args[2];
             at.block = args[3];
             at.lane = o.i(0);
             return {valueAt(o, at, key(o, stage, at), valueDim(o, at))};
           }),
      {{"dd", plan.group},
       {"dt", llvm::divideCeil(*extent.fixed, plan.group)},
       {"jj", stage.block}}};
  stage.sharedValues->asVectors = *extent.fixed % plan.group == 0 &&
                                  op.getValues().size() == 1 &&
                                  comesByFour(op.getValues()[0], op.valueMap(0),
                                              op.firstDim(DimKind::Value));
}

/// G(ii, jt, kb, ...): the last element of each group of \p groups, which a
/// thread has in registers, for the other threads of its queries. The first one
/// of a block reads the values, under a condition that is never met: they are
/// in shared memory from here on, else libHalide gives the place of the keys to
/// something small, and values would find none.
halide::FuncOp Streaming::lastOfGroup(StreamingStage &stage, StringRef name,
                                      halide::FuncOp groups) {
  bool first = stage.sharedValues && (!shifted || groups == stage.scores);
  return func(
      stage.name(name), {"ii", "jt", "kb"}, 1,
      [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
        TilePlace at = TilePlace::ofGroup(args);
        Value last = o.read(groups.getResult(), args).back();
        if (!first)
          return {last};
        Value number = halide::UnboundedOp::create(
            o.b, o.loc,
            arith::SIToFPOp::create(o.b, o.loc, o.b.getF32Type(), at.group));
        Value v = o.read1(stage.sharedValues->func.getResult(),
                          at.with({o.i(0), o.i(0), o.i(0), at.block}));
        return {o.select(o.greater(o.f(0), number), v, last)};
      });
}

/// W(ii, jt, kb, ...): a group of weights and their sum; P(ii, jj, kb, ...):
/// the weights for all threads.
void Streaming::stageOwnWeights(StreamingStage &stage) {
  const int64_t group = plan.keyGroup;
  stage.ownWeights =
      func(stage.name("own"), {"ii", "jt", "kb"}, group + summed,
           [&](Ops &o, ArrayRef<Value> args) {
             TilePlace at = TilePlace::ofGroup(args);
             SmallVector<Value> scores = o.read(stage.scores.getResult(), args),
                                values, terms;
             for (int64_t y = 0; y < group; ++y) {
               Value key = o.addi(o.muli(at.group, o.i(group)), o.i(y));
               Weight weight = weightAt(o, stage, scores[y], at.atKey(key));
               values.push_back(weight.ofProduct);
               terms.push_back(o.select(weight.seen, weight.ofSum, o.zero()));
             }
             if (summed)
               values.push_back(o.tree(
                   terms, [&](Value x, Value y) { return o.sum(x, y); }));
             return values;
           });
  Value own = stage.ownWeights.getResult();
  if (summed)
    stage.groupSums = lastOfGroup(stage, "sums", stage.ownWeights);
  stage.weights =
      func(stage.name("p"), {"ii", "jj", "kb"}, 1,
           [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
             TilePlace at = TilePlace::ofPair(args);
             SmallVector<Value> values = o.read(
                 own, at.with({at.lane, o.floorDiv(at.key, group), at.block}));
             values.resize(group);
             return {halide::MuxOp::create(o.b, o.loc, o.b.getF32Type(),
                                           o.mod(at.key, group), values)};
           });
}
