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
    stage.sharedKeys.push_back({position, std::move(keys)});
  }
}

/// V(dd, dt, jj, kb, ...): values as a block has them in shared memory.
void Streaming::shareValues(StreamingStage &stage) {
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
}
