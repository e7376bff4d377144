//===- TilePlace.h - a place in a tile and a block --------------*- C++ -*-===//
#ifndef HEED_PASSES_LOWER_TILEPLACE_H
#define HEED_PASSES_LOWER_TILEPLACE_H

#include "passes/Schedule/StreamingOps.h"

namespace heed::streaming {

/// Where a func of streaming attention is asked: at vars of its own, and then
/// at the tile and the batch, which all of them have. What a func has no var of
/// is null. The makers take a func's arguments, each for a kind of func.
struct TilePlace {
  Value lane;            ///< the query, in its tile
  Value inGroup;         ///< the key, or the value dim, in its group
  Value group;           ///< of keys, or of value dims
  Value key;             ///< in its block; or a row of a table over offsets
  Value block;           ///< of keys
  Value part;            ///< of the blocks, where a task has a part of a row
  Value tile;            ///< of queries
  ArrayRef<Value> batch; ///< innermost first

  /// (tile, batch)
  static TilePlace ofTile(ArrayRef<Value> at) {
    TilePlace place;
    place.tile = at.front();
    place.batch = at.drop_front();
    return place;
  }
  /// (lane, tile, batch)
  static TilePlace ofLane(ArrayRef<Value> at) {
    TilePlace place = ofTile(at.drop_front());
    place.lane = at[0];
    return place;
  }
  /// (lane, block, tile, batch)
  static TilePlace ofRow(ArrayRef<Value> at) {
    TilePlace place = ofTile(at.drop_front(2));
    place.lane = at[0];
    place.block = at[1];
    return place;
  }
  /// (lane, key, block, tile, batch)
  static TilePlace ofPair(ArrayRef<Value> at) {
    TilePlace place = ofTile(at.drop_front(3));
    place.lane = at[0];
    place.key = at[1];
    place.block = at[2];
    return place;
  }
  /// (lane, inGroup, group, block, tile, batch)
  static TilePlace ofElement(ArrayRef<Value> at) {
    TilePlace place = ofTile(at.drop_front(4));
    place.lane = at[0];
    place.inGroup = at[1];
    place.group = at[2];
    place.block = at[3];
    return place;
  }
  /// (lane, group, tile, batch)
  static TilePlace ofState(ArrayRef<Value> at) {
    TilePlace place = ofTile(at.drop_front(2));
    place.lane = at[0];
    place.group = at[1];
    return place;
  }
  /// (lane, group, block, tile, batch)
  static TilePlace ofGroup(ArrayRef<Value> at) {
    TilePlace place = ofTile(at.drop_front(3));
    place.lane = at[0];
    place.group = at[1];
    place.block = at[2];
    return place;
  }

  /// (lane, group, part, tile, batch)
  static TilePlace ofPart(ArrayRef<Value> at) {
    TilePlace place = ofTile(at.drop_front(3));
    place.lane = at[0];
    place.group = at[1];
    place.part = at[2];
    return place;
  }

  TilePlace atLane(Value lane) const {
    TilePlace place = *this;
    place.lane = lane;
    return place;
  }
  TilePlace atKey(Value key) const {
    TilePlace place = *this;
    place.key = key;
    return place;
  }
  TilePlace inBlock(Value block) const {
    TilePlace place = *this;
    place.block = block;
    return place;
  }

  /// Coordinates of a func whose own vars are at \p own.
  SmallVector<Value> with(ArrayRef<Value> own) const {
    SmallVector<Value> coordinates(own);
    coordinates.push_back(tile);
    llvm::append_range(coordinates, batch);
    return coordinates;
  }
  SmallVector<Value> element() const {
    return with({lane, inGroup, group, block});
  }
  SmallVector<Value> inGroups() const { return with({lane, group, block}); }
  SmallVector<Value> row() const { return with({lane, block}); }
  SmallVector<Value> pair() const { return with({lane, key, block}); }
};

} // namespace heed::streaming

#endif
