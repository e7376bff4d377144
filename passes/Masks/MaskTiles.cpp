//===- MaskTiles.cpp - what a solved mask says of each tile ---------------===//
#include "passes/Masks/MaskTiles.h"

#include <cmath>

using namespace mlir;
using namespace heed;
using attn::DimKind;

AttentionMask::AttentionMask(attn::AttentionLike op)
    : op(op), bounds(readMask(op)) {
  exprs = succeeded(bounds) ? bounds->exprs
                            : std::make_shared<Exprs>(op->getContext());
  SmallVector<ExprRef> arguments;
  for (auto [kind, vars] :
       {std::pair(DimKind::Batch, &batch), std::pair(DimKind::Query, &queries),
        std::pair(DimKind::Key, &keys)})
    for (unsigned k = 0; k < op.numDims(kind); ++k) {
      vars->push_back(exprs->freshVar());
      arguments.push_back(exprs->var(vars->back()));
    }
  where = exprs->block(op.getWhere().front(), arguments);
}

SmallVector<unsigned> AttentionMask::batchDims() const {
  SmallVector<unsigned> dims;
  if (succeeded(bounds))
    dims = bounds->batchOfRange();
  for (auto [k, var] : llvm::enumerate(batch))
    if (where && where->uses(var) && !llvm::is_contained(dims, k))
      dims.push_back(k);
  llvm::sort(dims);
  return dims;
}

int64_t AttentionMask::largestConstant() const {
  int64_t largest = 0;
  if (where)
    Exprs::walk(where, [&](ExprRef e) {
      if (auto value = Exprs::constantInt(e); value && std::abs(*value) < 1024)
        largest = std::max<int64_t>(largest, std::abs(*value));
    });
  return largest;
}

static SmallVector<Value> sizesOf(attn::AttentionLike op, DimKind kind) {
  attn::AttentionLike that = op;
  return SmallVector<Value>(
      that.getSizes().slice(that.firstDim(kind), that.numDims(kind)));
}

SmallVector<Value> AttentionMask::queryDims() const {
  return sizesOf(op, DimKind::Query);
}

SmallVector<Value> AttentionMask::keyDims() const {
  return sizesOf(op, DimKind::Key);
}

void AttentionMask::fill(MaskTiles &tiles, MaskValues &values,
                         ArrayRef<int64_t> batchAt, bool withElements) {
  MaskValues::Variables variables;
  auto set = [&](unsigned var, int64_t value) {
    variables.insert_or_assign(var, MaskValue::integer(value));
  };
  for (auto [k, at] : llvm::enumerate(batchAt)) {
    set(batch[k], at);
    if (succeeded(bounds))
      set(bounds->batch[k], at);
  }
  // Nothing solved, nothing known of a tile: each of its elements is evaluated.
  tiles.tiles.assign(tiles.rows() * tiles.columns(), TileKind::Partial);
  if (succeeded(bounds)) {
    set(bounds->queries, tiles.queries);
    set(bounds->keys, tiles.keys);
    fillTiles(tiles, values, variables);
  }
  if (withElements)
    fillElements(tiles, values, variables);
}

void AttentionMask::fillTiles(MaskTiles &tiles, MaskValues &values,
                              MaskValues::Variables &variables) {
  auto set = [&](unsigned var, int64_t value) {
    variables.insert_or_assign(var, MaskValue::integer(value));
  };
  for (int64_t row = 0; row < tiles.rows(); ++row) {
    int64_t i0 = row * tiles.tileQueries,
            end = std::min(i0 + tiles.tileQueries, tiles.queries);
    set(bounds->first, i0);
    set(bounds->last, end - 1);
    setTables(/*ofKeys=*/false, i0, end, values, variables);
    for (int64_t column = 0; column < tiles.columns(); ++column) {
      int64_t j0 = column * tiles.tileKeys,
              j1 = std::min(j0 + tiles.tileKeys, tiles.keys) - 1;
      set(bounds->blockFirst, j0);
      set(bounds->blockLast, j1);
      setTables(/*ofKeys=*/true, j0, j1 + 1, values, variables);
      MaskValue reached =
          covers(bounds->reach, false, j0, j1, values, variables);
      MaskValue filled = covers(bounds->full, true, j0, j1, values, variables);
      tiles.tiles[row * tiles.columns() + column] =
          reached.never()                           ? TileKind::Empty
          : filled.surely()                         ? TileKind::Full
          : reached.isSingle() && filled.isSingle() ? TileKind::Partial
                                                    : TileKind::ByData;
    }
  }
}

MaskValue AttentionMask::covers(ArrayRef<MaskPiece> pieces, bool all,
                                int64_t begin, int64_t last, MaskValues &values,
                                const MaskValues::Variables &variables) {
  // Whether x <= y, of what both may be.
  auto ordered = [](const MaskValue &x, const MaskValue &y) -> MaskValue {
    return {x.high <= y.low, x.low <= y.high, {}};
  };
  MaskValue result = MaskValue::integer(0);
  for (const MaskPiece &piece : pieces) {
    MaskValue low = values.of(*exprs, piece.low, variables),
              high = values.of(*exprs, piece.high, variables);
    auto before = [&](int64_t key) {
      return ordered(MaskValue::integer(key + 1), high);
    };
    auto from = [&](int64_t key) {
      return ordered(low, MaskValue::integer(key));
    };
    MaskValue parts[] = {
        from(all ? begin : last), before(all ? last : begin),
        MaskValue{low.high < high.low, low.low < high.high, {}}, // not empty
        piece.test ? values.of(*exprs, piece.test, variables)
                   : MaskValue::integer(1)};
    MaskValue holds = MaskValue::integer(1);
    for (const MaskValue &part : parts)
      holds = {
          std::min(holds.low, part.low), std::min(holds.high, part.high), {}};
    result = {
        std::max(result.low, holds.low), std::max(result.high, holds.high), {}};
  }
  return result;
}

void AttentionMask::setTables(bool ofKeys, int64_t begin, int64_t end,
                              MaskValues &values,
                              MaskValues::Variables &variables) {
  for (const MaskTable &table : bounds->tables) {
    if (table.ofKeys != ofKeys)
      continue;
    std::optional<MaskValue> least, greatest;
    MaskValue odd = MaskValue::integer(0);
    bool isReal = isa<FloatType>(table.value->type), known = true;
    // Of nothing but NaN there is no number.
    double lowest = INFINITY, highest = -INFINITY;
    for (int64_t x = begin; x < end; ++x) {
      variables.insert_or_assign(ofKeys ? bounds->key : bounds->query,
                                 MaskValue::integer(x));
      MaskValue value = values.of(*exprs, table.value, variables);
      known &= !isReal || value.real.has_value();
      if (isReal && value.real && std::isnan(*value.real))
        odd = MaskValue::integer(1);
      lowest = std::fmin(lowest, value.real.value_or(INFINITY));
      highest = std::fmax(highest, value.real.value_or(-INFINITY));
      least = least ? MaskValue{std::min(least->low, value.low),
                                std::min(least->high, value.high),
                                {}}
                    : value;
      greatest = greatest ? MaskValue{std::max(greatest->low, value.low),
                                      std::max(greatest->high, value.high),
                                      {}}
                          : value;
    }
    MaskValue any = MaskValue::anything(table.value->type);
    if (isReal) {
      least = known ? MaskValue::number(lowest) : any;
      greatest = known ? MaskValue::number(highest) : any;
      odd = known ? odd : MaskValue{0, 1, {}};
    }
    variables.insert_or_assign(table.least, least.value_or(any));
    variables.insert_or_assign(table.greatest, greatest.value_or(any));
    if (table.odd)
      variables.insert_or_assign(*table.odd, odd);
  }
}

void AttentionMask::fillElements(MaskTiles &tiles, MaskValues &values,
                                 MaskValues::Variables &variables) {
  tiles.elements.assign(tiles.queries * tiles.keys, TileKind::Empty);
  auto extents = [&](ArrayRef<Value> dims) {
    return llvm::map_to_vector(dims,
                               [&](Value size) { return values.of(size).low; });
  };
  auto setIndices = [&](ArrayRef<unsigned> vars, ArrayRef<int64_t> sizes,
                        int64_t place) {
    for (size_t k = vars.size(); k-- > 0; place /= sizes[k])
      variables.insert_or_assign(vars[k], MaskValue::integer(place % sizes[k]));
  };
  SmallVector<int64_t> querySizes = extents(queryDims()),
                       keySizes = extents(keyDims());
  for (int64_t i = 0; i < tiles.queries; ++i) {
    setIndices(queries, querySizes, i);
    for (int64_t j = 0; j < tiles.keys; ++j) {
      TileKind tile = tiles.tiles[i / tiles.tileQueries * tiles.columns() +
                                  j / tiles.tileKeys];
      if (tile == TileKind::Empty || tile == TileKind::Full)
        continue;
      setIndices(keys, keySizes, j);
      MaskValue live =
          where ? values.of(*exprs, where, variables) : MaskValue{0, 1, {}};
      tiles.elements[i * tiles.keys + j] = live.surely()  ? TileKind::Full
                                           : live.never() ? TileKind::Empty
                                                          : TileKind::ByData;
    }
  }
}
