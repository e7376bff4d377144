//===- StreamingSplit.cpp - parts of the keys on a GPU --------------------===//
//
// Few queries have too few tiles for the multiprocessors of a GPU. Their keys
// are cut in parts, each a tile of its own, a block of threads, that leaves its
// state (Dao et al. 2023, "Flash-Decoding"):
//
//   part [F/8][TQ]      tuple (8 accumulators, m, l) of the blocks of a part
//   parts [P][F/8][TQ]  the same in the device's memory, of all parts
//   st [F/8][TQ]        the parts of a tile, merged by another kernel
//
// What a block computes and the end of a row are those of tiles.
#include "passes/Lower/StreamingBuilder.h"
#include "passes/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace heed;
using namespace heed::streaming;
using attn::DimKind;

/// Part p has the blocks p, p + P, p + 2 P, ... of each segment of the keys. P
/// is told by the caller: of an expression libHalide would make two, and not
/// see that a turn needs one block.
void Streaming::splitKeys() {
  Ops outside{b, loc};
  Value count = halide::ParamOp::create(b, loc, b.getI32Type(), kPartsInput);
  const unsigned elements = plan.group + shifted + summed;
  plan.part = func("part", {"ii", "dt", "kp"}, elements,
                   [&](Ops &o, ArrayRef<Value>) { return initialState(o); });
  for (StreamingStage &stage : plan.stages) {
    Value length =
        mutated("streaming.split-drops-blocks")
            ? arith::FloorDivSIOp::create(b, loc, stage.blocks, count)
                  .getResult()
            : outside.ceilDiv(stage.blocks, outside.atLeastOne(count));
    auto place = [&](Ops &o, ArrayRef<Value> args, ArrayRef<Value> loops) {
      TilePlace at = TilePlace::ofPart(args);
      return at.inBlock(o.addi(o.muli(loops[0], count), at.part));
    };
    stage.update =
        update(plan.part, {"rk" + stage.suffix}, {length},
               [&](Ops &o, ArrayRef<Value> args, ArrayRef<Value> loops) {
                 auto [accumulators, top, sum] =
                     partOf(o, stage, place(o, args, loops));
                 return merged(o, o.read(plan.part.getResult(), args),
                               accumulators, top, sum);
               });
    where(stage.update,
          [&](Ops &o, ArrayRef<Value> args, ArrayRef<Value> loops) {
            TilePlace at = place(o, args, loops);
            Value inside = o.less(at.block, stage.blocks);
            return o.both(o.hidden(inside), visited(o, stage, at));
          });
  }
  plan.parts = func(
      "parts", {"ii", "dt", "kp"}, elements, [&](Ops &o, ArrayRef<Value> args) {
        SmallVector<Value> values = o.read(plan.part.getResult(), args);
        values.front() =
            withQueriesKept(o, values.front(), TilePlace::ofPart(args));
        return values;
      });
  beginState();
  update(plan.state, {"rp"}, {count},
         [&](Ops &o, ArrayRef<Value> args, ArrayRef<Value> loops) {
           TilePlace at = TilePlace::ofState(args);
           SmallVector<Value> part = o.read(
               plan.parts.getResult(), at.with({at.lane, at.group, loops[0]}));
           return merged(o, o.read(plan.state.getResult(), args),
                         ArrayRef(part).take_front(plan.group),
                         shifted ? part[topElement()] : Value(),
                         summed ? part[sumElement()] : Value());
         });
}
