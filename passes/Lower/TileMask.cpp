//===- TileMask.cpp - which blocks of keys a tile of queries visits -------===//
#include "passes/Lower/TileMask.h"
#include "passes/Lower/MaskTables.h"
#include "passes/Mutation.h"
#include "passes/Schedule/StreamingOps.h"
#include "support/Format.h"

using namespace mlir;
using namespace heed;
using streaming::Ops;

TileMask::TileMask(OpBuilder &b, Location loc, const MaskBounds &bounds,
                   const MaskTiling &tiling, const IRMapping &scalars,
                   TensorReads &tensors)
    : write(bounds, tiling, loc, scalars, tensors) {
  if (!bounds.needsTables())
    return;
  auto buffer = [&](StringRef name, unsigned rank, Type type) -> Value {
    Value value = halide::BufferOp::create(b, loc, name, rank, type);
    for (unsigned dim = 0; dim < rank; ++dim)
      halide::SetBoundsOp::create(b, loc, value, dim, constantI32(b, loc, 0),
                                  Value());
    return value;
  };
  for (auto [number, table] : llvm::enumerate(bounds.tables)) {
    unsigned rank = 1 + bounds.batchOf(table).size();
    tables.emplace_back();
    for (auto [part, name] : llvm::enumerate(maskTableNames(table, number)))
      tables.back().push_back(
          buffer(name, rank, part < 2 ? elementType(table) : b.getI1Type()));
  }
  if (bounds.evaluated)
    live = buffer(kMaskLiveInput, 2 + bounds.batchOfCondition.size(),
                  b.getI1Type());
  range =
      buffer(kMaskRangeInput, 2 + bounds.batchOfRange().size(), b.getI32Type());
}

Value TileMask::row(OpBuilder &b, int64_t place, Value tile,
                    ArrayRef<Value> batch) {
  Ops o{b, write.loc};
  SmallVector<Value> at{o.i(place), tile};
  SmallVector<unsigned> dims = write.bounds.batchOfRange();
  for (unsigned k : llvm::reverse(dims))
    at.push_back(batch[k]);
  return o.read1(range, at);
}

Value TileMask::any(OpBuilder &b, ArrayRef<MaskPiece> pieces, int64_t place,
                    bool all, Value block, int64_t size, Value tile,
                    ArrayRef<Value> batch) {
  Ops o{b, write.loc};
  return write.any(
      b, pieces, place, all, block, size, tile, batch,
      [&](int64_t at) { return row(b, at, tile, batch); },
      [&](size_t number, ArrayRef<Value> at) {
        SmallVector<Value> values;
        for (Value buffer : tables[number])
          values.push_back(o.read1(buffer, at));
        return values;
      });
}

TileMask::BlockPlace TileMask::placeOf(OpBuilder &b, Value block, int64_t size,
                                       const MaskedKeys &keys) {
  Ops o{b, write.loc};
  BlockPlace place{block, o.muli(block, o.i(size))};
  if (keys.first)
    place.low = o.addi(keys.first, place.low);
  if (keys.segment > 0 && range)
    place.number = o.addi(o.muli(write.blocksBefore(b, keys.segment),
                                 o.i(write.tiling.block / size)),
                          block);
  return place;
}

Value TileMask::visitsFull(OpBuilder &b, Value block, Value tile,
                           ArrayRef<Value> batch, MaskedKeys keys) {
  Ops o{b, write.loc};
  const MaskBounds &bounds = write.bounds;
  auto [number, low] = placeOf(b, block, write.tiling.block, keys);
  if (!range) {
    SmallVector<Value> ends =
        write.write(b, {bounds.full[0].low, bounds.full[0].high},
                    write.tile(b, tile, batch));
    return o.both(o.atMost(ends[0], low),
                  o.atMost(mutated("mask-tables.full-by-first-key")
                               ? low
                               : o.addi(low, o.i(write.tiling.block)),
                           ends[1]));
  }
  Value inside = o.both(o.atMost(row(b, FirstFull, tile, batch), number),
                        o.less(number, row(b, EndFull, tile, batch)));
  return o.both(inside, any(b, bounds.full, Ends + 2 * bounds.reach.size(),
                            true, number, write.tiling.block, tile, batch));
}

Value TileMask::visits(OpBuilder &b, Value piece, Value tile,
                       ArrayRef<Value> batch, MaskedKeys keys) {
  Ops o{b, write.loc};
  const MaskBounds &bounds = write.bounds;
  int64_t size = write.tiling.piece;
  auto [number, low] = placeOf(b, piece, size, keys);
  Value inside;
  if (!range) {
    MaskPiece hull = bounds.hull();
    SmallVector<Value> ends =
        write.write(b, {hull.low, hull.high}, write.tile(b, tile, batch));
    // Both ends of an empty range may lie in one block.
    inside = o.both(o.less(mutated("mask-tables.drop-last-block")
                               ? o.addi(low, o.i(size))
                               : low,
                           ends[1]),
                    o.less(ends[0], o.addi(low, o.i(size))));
    if (!Exprs::isConstantInt(hull.low, 0))
      inside = o.both(inside, o.less(ends[0], ends[1]));
  } else {
    inside = o.both(o.atMost(row(b, FirstPiece, tile, batch), number),
                    o.less(number, row(b, EndPiece, tile, batch)));
    if (live) {
      SmallVector<Value> at{number, tile};
      for (unsigned k : llvm::reverse(bounds.batchOfCondition))
        at.push_back(batch[k]);
      inside = o.both(inside, o.read1(live, at));
    } else if (bounds.reach.size() > 1 || bounds.reach[0].test)
      inside = o.both(
          inside, any(b, bounds.reach, Ends, false, number, size, tile, batch));
  }
  return inside;
}

Value TileMask::visitsPartial(OpBuilder &b, Value piece, Value tile,
                              ArrayRef<Value> batch, MaskedKeys keys) {
  Ops o{b, write.loc};
  Value inside = visits(b, piece, tile, batch, keys);
  if (!anyFull())
    return inside;
  Value block = o.floorDiv(piece, write.tiling.block / write.tiling.piece);
  if (mutated("mask-tables.full-blocks-twice"))
    return inside;
  // A block that ends behind its part is not full, whoever sees these keys.
  Value full = visitsFull(b, block, tile, batch, keys);
  if (keys.wholeBlocks && !mutated("streaming.full-behind-its-part"))
    full = o.both(full, o.less(block, keys.wholeBlocks));
  return o.both(inside, o.negate(full));
}
