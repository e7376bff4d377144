//===- MaskTables.cpp - what a mask's tiles and blocks need to know -------===//
//   mask0, ...   least and greatest of an expression, per tile or piece of keys
//   mask_live    whether any query of a tile sees a key of a piece, where the
//                plan has the condition evaluated
//   ends         of each piece of the union, in keys, per tile
//   found        first and last piece of keys that is seen, and that is full,
//                per lane: pieces are looked at in vectors
//   mask_range   the row of a tile
#include "passes/Lower/MaskTables.h"
#include "passes/Mutation.h"
#include "passes/Schedule/StreamingOps.h"
#include "support/Format.h"

using namespace mlir;
using namespace heed;
using attn::DimKind;
using streaming::Ops;

namespace {

constexpr int64_t none = 1 << 30; // no piece: behind all others
constexpr int64_t lanes = 16;

class Writer {
public:
  Writer(OpBuilder &b, attn::AttentionLike op, const MaskBounds &bounds,
         const MaskTiling &tiling, const IRMapping &scalars,
         TensorReads &tensors)
      : b(b), loc(op->getLoc()), op(op), bounds(bounds), tiling(tiling),
        scalars(scalars), tensors(tensors),
        write(bounds, tiling, op->getLoc(), scalars, tensors),
        used(bounds.batchOfRange()), batchDims(op.numDims(DimKind::Batch)) {}

  LogicalResult run() {
    for (const MaskTable &t : bounds.tables)
      table(t);
    if (bounds.evaluated)
      writeLive();
    range();
    return failure(write.failed);
  }

private:
  void table(const MaskTable &t);
  void writeLive();
  void scheduleLive(halide::FuncOp seen);
  Value condition(Ops &o, Value i, Value j, ArrayRef<Value> at);
  Value isLive(Ops &o, Value piece, Value tile, ArrayRef<Value> at);
  void range();
  void writeEnds();
  void writeFound();
  std::optional<MaskPiece> simpleHull();
  Value meetsHull(Ops &o, const MaskPiece &hull, Value low, int64_t size,
                  Value tile, ArrayRef<Value> at);
  Value limit(Type type, bool greatest);

  using Body = llvm::function_ref<SmallVector<Value>(Ops &, ArrayRef<Value>)>;
  halide::FuncOp func(StringRef name, ArrayRef<StringRef> own,
                      ArrayRef<unsigned> dims, TypeRange types, Body body) {
    SmallVector<std::string> names(own.begin(), own.end());
    for (unsigned k : llvm::reverse(dims))
      names.push_back(heed::format("b{}", k));
    SmallVector<StringRef> vars(names.begin(), names.end());
    return halide::FuncOp::create(
        b, loc, name, vars, types,
        [&](OpBuilder &inner, Location, ValueRange args) {
          Ops o{inner, loc};
          return body(o, SmallVector<Value>(args));
        });
  }
  halide::UpdateOp update(halide::FuncOp f, StringRef var, Value extent,
                          Body body) {
    auto update = halide::UpdateOp::over(b, loc, f.getResult(), {var}, extent);
    update.fill(b, update.getSet(),
                [&](OpBuilder &inner, Location, ValueRange args) {
                  Ops o{inner, loc};
                  return body(o, SmallVector<Value>(args));
                });
    return update;
  }
  void output(halide::FuncOp f) {
    halide::OutputOp::create(b, loc, f.getResult());
    // Halide bounds the arrays of a tuple by the first alone.
    if (f.getElementTypes().size() > 1)
      return;
    for (size_t dim = 0; dim < f.getVars().size(); ++dim)
      halide::SetBoundsOp::create(b, loc, f.getResult(), dim,
                                  constantI32(b, loc, 0), Value());
  }
  /// One value per batch dim; those that the mask does not use are null.
  SmallVector<Value> batch(ArrayRef<Value> vars, ArrayRef<unsigned> dims) {
    SmallVector<Value> values(batchDims);
    for (auto [k, dim] : llvm::enumerate(llvm::reverse(dims)))
      values[dim] = vars[k];
    return values;
  }

  OpBuilder &b;
  Location loc;
  attn::AttentionLike op;
  const MaskBounds &bounds;
  const MaskTiling &tiling;
  const IRMapping &scalars;
  TensorReads &tensors;
  MaskExpressions write;
  SmallVector<unsigned> used;
  unsigned batchDims;
  SmallVector<halide::FuncOp> tables;
  halide::FuncOp live, ends, found;
};

Value Writer::limit(Type type, bool greatest) {
  if (auto real = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(
        b, loc,
        FloatAttr::get(type, APFloat::getInf(real.getFloatSemantics(),
                                             /*Negative=*/!greatest)));
  unsigned width = type.getIntOrFloatBitWidth();
  APInt value = width == 1 ? APInt(1, greatest)
                : greatest ? APInt::getSignedMaxValue(width)
                           : APInt::getSignedMinValue(width);
  return arith::ConstantOp::create(b, loc, IntegerAttr::get(type, value));
}

void Writer::table(const MaskTable &t) {
  Type type = elementType(t);
  SmallVector<Type> types{type, type};
  SmallVector<Value> start{limit(type, true), limit(type, false)};
  if (t.odd) {
    types.push_back(b.getI1Type());
    start.push_back(limit(b.getI1Type(), false));
  }
  SmallVector<unsigned> dims = bounds.batchOf(t);
  halide::FuncOp f = func(heed::format("mask{}", tables.size()), {"p"}, dims,
                          types, [&](Ops &, ArrayRef<Value>) { return start; });
  int64_t size = t.ofKeys ? tiling.piece : tiling.tile;
  Value extent = t.ofKeys ? tiling.keys : tiling.queries;
  auto place = [&](Ops &o, ArrayRef<Value> args) {
    Value first = t.ofKeys ? write.keysOf(o.b, args[0], size).low
                           : o.muli(args[0], o.i(size));
    return o.addi(first, args.back());
  };
  auto look = update(
      f, "r", constantI32(b, loc, size), [&](Ops &o, ArrayRef<Value> args) {
        Value at = place(o, args);
        MaskExpressions::Bindings bindings{
            {t.ofKeys ? bounds.key : bounds.query, at},
            {bounds.queries, tiling.queries},
            {bounds.keys, tiling.keys}};
        for (auto [var, value] :
             llvm::zip(bounds.batch, batch(args.slice(1, dims.size()), dims)))
          if (value)
            bindings.push_back({var, value});
        Value x = write.element(o.b, t, bindings);
        SmallVector<Value> old =
            o.read(f.getResult(), args.take_front(1 + dims.size()));
        SmallVector<Value> values{
            write.extreme(o.b, old[0], x, false),
            write.extreme(o.b, old[1], x, !mutated("mask-tables.least-twice"))};
        if (t.odd)
          values.push_back(write.extreme(
              o.b, old[2],
              arith::CmpFOp::create(o.b, loc, arith::CmpFPredicate::UNO, x, x),
              true));
        return values;
      });
  look.fill(
      b, look.getWhere(),
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        Ops o{inner, loc};
        Value at = place(o, SmallVector<Value>(args));
        return {o.less(
            mutated("mask-tables.drop-last-of-table") ? o.addi(at, o.i(1)) : at,
            extent)};
      });
  output(f);
  tables.push_back(f);
}

/// `where` of a pair, \p at one index for each batch dim that it uses.
Value Writer::condition(Ops &o, Value i, Value j, ArrayRef<Value> at) {
  SmallVector<Value> dims(at);
  dims.append({i, j});
  for (Value &dim : dims)
    if (!dim)
      dim = o.i(0);
  IRMapping map = scalars;
  Block &block = op.getWhere().front();
  for (auto [argument, value] : llvm::zip(block.getArguments(), dims))
    map.map(argument, value);
  if (failed(translateBody(o.b, block, map, dims, tensors))) {
    write.failed = true;
    return limit(o.b.getI1Type(), false);
  }
  return map.lookup(block.getTerminator()->getOperand(0));
}

/// Lanes are keys: whether any query of the tile sees each, and then whether
/// any is seen.
void Writer::writeLive() {
  ArrayRef<unsigned> dims = bounds.batchOfCondition;
  Type i1 = b.getI1Type();
  auto none = [&](Ops &, ArrayRef<Value>) {
    return SmallVector<Value>{limit(i1, false)};
  };
  halide::FuncOp seen = func("seen", {"l", "p", "ib"}, dims, i1, none);
  std::optional<MaskPiece> hull = simpleHull();
  auto firstKey = [&](Ops &o, Value piece) {
    return write.keysOf(o.b, piece, tiling.piece).low;
  };
  auto query = [&](Ops &o, Value tile, Value row) {
    return o.addi(o.muli(tile, o.i(tiling.tile)), row);
  };
  Value rows = constantI32(b, loc,
                           mutated("mask-tables.live-without-last-query")
                               ? tiling.tile - 1
                               : tiling.tile);
  auto look = update(seen, "rq", rows, [&](Ops &o, ArrayRef<Value> args) {
    ArrayRef<Value> at = args.drop_back();
    Value i = query(o, at[2], args.back());
    // Keys behind the last one are looked at as the last one.
    Value j = o.mini(o.addi(firstKey(o, at[1]), at[0]), o.last(tiling.keys));
    Value here = condition(o, i, j, batch(at.drop_front(3), dims));
    return SmallVector<Value>{
        write.extreme(o.b, o.read1(seen.getResult(), at), here, true)};
  });
  look.fill(
      b, look.getWhere(),
      [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
        Ops o{inner, loc};
        Value low = firstKey(o, args[1]), tile = args[2];
        Value some = o.both(o.less(query(o, tile, args.back()), tiling.queries),
                            o.less(low, tiling.keys));
        if (hull)
          some = o.both(
              some,
              meetsHull(
                  o, *hull, low, tiling.piece, tile,
                  batch(SmallVector<Value>(args.slice(3, dims.size())), dims)));
        return {some};
      });
  live = func(kMaskLiveInput, {"p", "ib"}, dims, i1, none);
  Value keys = constantI32(b, loc,
                           mutated("mask-tables.live-without-last-key")
                               ? tiling.piece - 1
                               : tiling.piece);
  update(live, "rl", keys, [&](Ops &o, ArrayRef<Value> args) {
    SmallVector<Value> at{args.back()};
    llvm::append_range(at, args.drop_back());
    return SmallVector<Value>{
        write.extreme(o.b, o.read1(live.getResult(), args.drop_back()),
                      o.read1(seen.getResult(), at), true)};
  });
  output(live);
  scheduleLive(seen);
}

/// A task is a tile; of each piece the keys are lanes.
void Writer::scheduleLive(halide::FuncOp seen) {
  halide::ParallelOp::create(b, loc, live.getResult(), 1, "ib");
  halide::ComputeAtOp::create(b, loc, seen.getResult(), live.getResult(), "p");
  for (StringRef var : seen.getVars().getAsValueRange<StringAttr>())
    if (var != "l")
      halide::BoundExtentOp::create(b, loc, seen.getResult(), var,
                                    constantI32(b, loc, 1));
  halide::BoundVarOp::create(b, loc, seen.getResult(), "l",
                             constantI32(b, loc, 0),
                             constantI32(b, loc, tiling.piece));
  for (int64_t stage : {0, 1})
    halide::VectorizeOp::create(b, loc, seen.getResult(), stage, "l");
}

void Writer::writeEnds() {
  SmallVector<ExprRef> roots;
  for (const auto *pieces : {&bounds.reach, &bounds.full})
    for (const MaskPiece &p : *pieces)
      roots.append({p.low, p.high});
  SmallVector<Type> types(roots.size(), b.getI32Type());
  ends = func("ends", {"ib"}, used, types, [&](Ops &o, ArrayRef<Value> args) {
    SmallVector<Value> at = batch(args.drop_front(), used);
    MaskExpressions::Bindings bindings = write.tile(o.b, args[0], at);
    for (auto [number, t] : llvm::enumerate(bounds.tables)) {
      if (t.ofKeys)
        continue;
      SmallVector<Value> place{args[0]};
      SmallVector<unsigned> dims = bounds.batchOf(t);
      for (unsigned d : llvm::reverse(dims))
        place.push_back(at[d]);
      SmallVector<Value> values = o.read(tables[number].getResult(), place);
      bindings.push_back({t.least, values[0]});
      bindings.push_back({t.greatest, values[1]});
      if (t.odd)
        bindings.push_back({*t.odd, values[2]});
    }
    return write.write(o.b, roots, bindings);
  });
}

void Writer::writeFound() {
  SmallVector<Type> types(4, b.getI32Type());
  found = func("found", {"l", "ib"}, used, types, [&](Ops &o, ArrayRef<Value>) {
    return SmallVector<Value>{o.i(none), o.i(-1), o.i(none), o.i(-1)};
  });
  Ops outside{b, loc};
  // Pieces of partly empty blocks are some more.
  const int64_t holes = tiling.cuts.size() * tiling.block;
  Value groups = outside.floorDiv(
      outside.addi(tiling.keys, outside.i(lanes * tiling.piece - 1 + holes)),
      lanes * tiling.piece);
  size_t rank = 2 + used.size();
  auto look = update(found, "rc", groups, [&](Ops &o, ArrayRef<Value> args) {
    ArrayRef<Value> vars = args.slice(1, rank - 1);
    SmallVector<Value> at = batch(vars.drop_front(), used);
    Value piece = o.addi(o.muli(args.back(), o.i(lanes)), args[0]);
    SmallVector<Value> old = o.read(found.getResult(), args.take_front(rank));
    auto row = [&](int64_t place) {
      return o.read(ends.getResult(), vars)[place];
    };
    auto read = [&](size_t number, ArrayRef<Value> place) {
      return o.read(tables[number].getResult(), place);
    };
    SmallVector<Value> values;
    size_t place = 0;
    for (const auto *pieces : {&bounds.reach, &bounds.full}) {
      bool all = pieces == &bounds.full;
      Value here = pieces->empty() ? limit(o.b.getI1Type(), false)
                   : !all && live
                       ? isLive(o, piece, vars.front(), at)
                       : write.any(o.b, *pieces, place, all, piece,
                                   tiling.piece, vars.front(), at, row, read);
      values.push_back(o.mini(old[2 * all], o.select(here, piece, o.i(none))));
      values.push_back(arith::MaxSIOp::create(o.b, loc, old[2 * all + 1],
                                              o.select(here, piece, o.i(-1))));
      place += 2 * pieces->size();
    }
    return values;
  });
  if (std::optional<MaskPiece> hull = simpleHull())
    look.fill(
        b, look.getWhere(),
        [&](OpBuilder &inner, Location, ValueRange args) -> SmallVector<Value> {
          Ops o{inner, loc};
          SmallVector<Value> vars(args.slice(2, used.size()));
          // Behind holes keys have lower numbers than without.
          Value low = o.muli(args.back(), o.i(lanes * tiling.piece));
          if (holes > 0)
            low = o.subi(low, o.i(holes));
          return {meetsHull(o, *hull, low, lanes * tiling.piece + holes,
                            args[1], batch(vars, used))};
        });
}

/// Whether the table has \p piece, which may lie behind the last one.
Value Writer::isLive(Ops &o, Value piece, Value tile, ArrayRef<Value> at) {
  Value pieces = write.numPieces(o.b);
  SmallVector<Value> place{o.mini(piece, o.last(o.atLeastOne(pieces))), tile};
  for (unsigned d : llvm::reverse(bounds.batchOfCondition))
    place.push_back(at[d]);
  return o.both(o.less(piece, pieces), o.read1(live.getResult(), place));
}

/// Where indices alone bound the keys, only that part is looked at: Halide
/// trims a loop by what it reads from inputs.
std::optional<MaskPiece> Writer::simpleHull() {
  MaskPiece hull = bounds.hull();
  bool simple = llvm::none_of(bounds.tables, [&](const MaskTable &t) {
    return llvm::any_of(ArrayRef{hull.low, hull.high}, [&](ExprRef e) {
      return e->uses(t.least) || e->uses(t.greatest);
    });
  });
  return simple ? std::optional(hull) : std::nullopt;
}

/// Whether any of \p size keys from \p low on lies in \p hull.
Value Writer::meetsHull(Ops &o, const MaskPiece &hull, Value low, int64_t size,
                        Value tile, ArrayRef<Value> at) {
  SmallVector<Value> limits =
      write.write(o.b, {hull.low, hull.high}, write.tile(o.b, tile, at));
  return o.both(o.less(low, limits[1]),
                o.less(limits[0], o.addi(low, o.i(size))));
}

void Writer::range() {
  writeEnds();
  writeFound();
  Type i32 = b.getI32Type();
  SmallVector<Type> types(4, i32);
  halide::FuncOp span =
      func("span", {"ib"}, used, types, [&](Ops &o, ArrayRef<Value>) {
        return SmallVector<Value>{o.i(none), o.i(-1), o.i(none), o.i(-1)};
      });
  update(span, "rl", constantI32(b, loc, lanes),
         [&](Ops &o, ArrayRef<Value> args) {
           SmallVector<Value> place{args.back()};
           llvm::append_range(place, args.drop_back());
           SmallVector<Value> old = o.read(span.getResult(), args.drop_back()),
                              more = o.read(found.getResult(), place), values;
           for (unsigned k = 0; k < 4; ++k)
             values.push_back(write.extreme(o.b, old[k], more[k], k % 2));
           return values;
         });
  size_t count = MaskRow::Ends + 2 * (bounds.reach.size() + bounds.full.size());
  halide::FuncOp range =
      func(kMaskRangeInput, {"k", "ib"}, used, i32,
           [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
             SmallVector<Value> s = o.read(span.getResult(), args.drop_front()),
                                values(MaskRow::Ends);
             int64_t pieces = tiling.block / tiling.piece;
             values[FirstPiece] = s[0];
             values[EndPiece] = mutated("mask-tables.drop-last-piece")
                                    ? s[1]
                                    : o.addi(s[1], o.i(1));
             // A block may begin before the first full piece and end behind the
             // last: it is not full then, and its own condition says so.
             values[FirstFull] = o.floorDiv(s[2], pieces);
             values[EndFull] = o.floorDiv(o.addi(s[3], o.i(pieces)), pieces);
             values.append(o.read(ends.getResult(), args.drop_front()));
             return {halide::MuxOp::create(o.b, loc, i32, args[0], values)};
           });
  output(range);

  auto value = [&](int64_t x) { return constantI32(b, loc, x); };
  halide::BoundVarOp::create(b, loc, range.getResult(), "k", value(0),
                             value(count));
  halide::UnrollOp::create(b, loc, range.getResult(), 0, "k");
  halide::SplitOp::create(b, loc, range.getResult(), 0, "ib", "task", "tile",
                          16, halide::TailStrategy::GuardWithIf);
  halide::ParallelOp::create(b, loc, range.getResult(), 0, "task");
  for (halide::FuncOp f : {ends, found, span}) {
    halide::ComputeAtOp::create(b, loc, f.getResult(), range.getResult(),
                                "tile");
    for (StringRef var : f.getVars().getAsValueRange<StringAttr>())
      if (var != "l")
        halide::BoundExtentOp::create(b, loc, f.getResult(), var, value(1));
  }
  halide::BoundVarOp::create(b, loc, found.getResult(), "l", value(0),
                             value(lanes));
  for (int64_t stage : {0, 1})
    halide::VectorizeOp::create(b, loc, found.getResult(), stage, "l");
}

} // namespace

SmallVector<std::string> heed::maskTableNames(const MaskTable &table,
                                              size_t number) {
  SmallVector<std::string> names;
  for (StringRef what : {"least", "greatest"})
    names.push_back(heed::format("mask{}_{}", number, what));
  if (table.odd)
    names.push_back(heed::format("mask{}_odd", number));
  return names;
}

SmallVector<MaskArray> heed::maskArrays(attn::AttentionLike op,
                                        const MaskBounds &bounds,
                                        const MaskTiling &tiling) {
  SmallVector<MaskArray> arrays;
  auto axes = [&](ArrayRef<unsigned> batch) {
    SmallVector<MaskArray::Axis> list;
    for (unsigned k : batch)
      list.push_back({k, 1});
    return list;
  };
  const MaskArray::Axis tiles{op.firstDim(DimKind::Query), tiling.tile},
      pieces{op.firstDim(DimKind::Key), tiling.piece,
             int64_t(tiling.cuts.size()) * (tiling.block / tiling.piece)};
  Builder b(op->getContext());
  for (auto [number, t] : llvm::enumerate(bounds.tables))
    for (auto [part, name] : llvm::enumerate(maskTableNames(t, number))) {
      MaskArray array{name, part < 2 ? elementType(t) : b.getI1Type(),
                      axes(bounds.batchOf(t))};
      array.axes.push_back(t.ofKeys ? pieces : tiles);
      arrays.push_back(std::move(array));
    }
  if (bounds.evaluated) {
    MaskArray live{kMaskLiveInput.str(), b.getI1Type(),
                   axes(bounds.batchOfCondition)};
    live.axes.push_back(tiles);
    live.axes.push_back(pieces);
    arrays.push_back(std::move(live));
  }
  MaskArray range{kMaskRangeInput.str(), b.getI32Type(),
                  axes(bounds.batchOfRange())};
  range.axes.push_back(tiles);
  range.axes.push_back(
      {std::nullopt, int64_t(MaskRow::Ends +
                             2 * (bounds.reach.size() + bounds.full.size()))});
  arrays.push_back(range);
  return arrays;
}

LogicalResult heed::writeMaskTables(OpBuilder &b, attn::AttentionLike op,
                                    const MaskBounds &bounds,
                                    const MaskTiling &tiling,
                                    const IRMapping &scalars,
                                    TensorReads &tensors) {
  return Writer(b, op, bounds, tiling, scalars, tensors).run();
}
