//===- StreamingOffsets.cpp - tables over offsets in streaming attention --===//
//
// An operand T[j - i + c], a row for each offset between key and query, would
// be read anew by each pair: lanes are queries, so that the lanes of one key
// want as many rows. But a tile and a block of keys reach few rows, tile +
// block at most, and one where the offset lies beyond the table's ends. So each
// row is used once for all queries, as a key is:
//
//   term   R[x][ii] = sum(e) q[i,e] T[x,e];      t[jj][ii] = R[j - i + c][ii]
//   value  W[x][ii] = p[x - c + i][ii];          pv[d][ii] += sum(x) W[x][ii]
//   T[x,d]
//
// What is left is to move lane l of a vector by l rows. It moves by 1, 2, 4, ..
// rows where that bit of l is set, each step a select between two rows by a
// constant mask: no vector is read lane by lane.
//
// Weights of keys beyond an end of the table are added up first. Tables of
// numbers, and those that meet keys, are in StreamingWindows.cpp.
#include "passes/Lower/StreamingBuilder.h"
#include "passes/Mutation.h"
#include "passes/Schedule/Schedule.h"
#include "passes/Schedule/StreamingWriter.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace heed;
using namespace heed::streaming;
using attn::DimKind;

Streaming::Table Streaming::tableAt(Ops &o, const StreamingStage &stage,
                                    Value tensor, AffineMap map,
                                    const TilePlace &at) {
  SmallVector<Value> symbols;
  for (Value symbol : op.getSymbols())
    symbols.push_back(scalars.lookup(symbol));
  SmallVector<Value> dims(numDims, o.i(0));
  IndexMath math(o.b, loc, tensors.largest);
  Table table;
  for (auto [axis, expr] : llvm::enumerate(map.getResults())) {
    std::optional<int> sign = op.offsetSign(expr);
    if (!sign)
      continue;
    FailureOr<Extent> extent = tensors.extent(o.b, tensor, axis);
    failedRead |= failed(extent);
    table.last = succeeded(extent) ? o.last(extent->value) : o.i(0);
    table.start =
        IndexMath::narrow(o.b, loc, expandAffine(math, expr, dims, symbols));
    table.reversed = *sign < 0;
  }
  // Sums of a few sizes, in i32: in i64 Halide takes twice as long over them.
  tensors.largest =
      std::min<int64_t>(tensors.largest, std::numeric_limits<int>::max() / 8);
  if (table.reversed)
    table.start = o.subi(table.last, table.start);
  table.start = o.addi(o.subi(keyOf(o, stage, firstRow(o, stage, at.block)),
                              o.muli(at.tile, o.i(plan.tile))),
                       table.start);
  table.first = o.maxi(o.addi(table.start, o.i(1 - plan.tile)), o.i(0));
  table.reached =
      o.subi(o.mini(o.addi(table.start, o.i(stage.block - 1)), table.last),
             table.first);
  return table;
}

bool Streaming::isTable(AffineMap map) {
  // With more than one such axis the rows are no line.
  return form == attn::Form::Tiles && !onGPU() &&
         llvm::count_if(
             map.getResults(),
             [&](AffineExpr e) { return op.offsetSign(e).has_value(); }) == 1 &&
         llvm::all_of(map.getResults(), [&](AffineExpr e) {
           return op.offsetSign(e) ||
                  (!e.isFunctionOfDim(op.firstDim(DimKind::Query)) &&
                   !e.isFunctionOfDim(op.firstDim(DimKind::Key)));
         });
}

std::optional<unsigned> Streaming::tableOf(unsigned term) {
  if (op.contractDims(term).empty() && op.maps(term).size() != 1)
    return std::nullopt;
  std::optional<unsigned> found;
  for (auto [number, map] : llvm::enumerate(op.maps(term))) {
    if (isTable(map)) {
      if (found)
        return std::nullopt;
      found = number;
    } else if (map.isFunctionOfDim(op.firstDim(DimKind::Key))) {
      return std::nullopt;
    }
  }
  return found;
}

std::optional<unsigned> Streaming::tableOfKeys(unsigned term) {
  if (op.contractDims(term).size() != 1)
    return std::nullopt;
  std::optional<unsigned> found;
  for (auto [number, map] : llvm::enumerate(op.maps(term))) {
    if (!map.isFunctionOfDim(op.firstDim(DimKind::Query)))
      continue;
    if (found || !isTable(map))
      return std::nullopt;
    found = number;
  }
  return found;
}

bool Streaming::hasTableValue() {
  for (unsigned value = 0; value < op.getValues().size(); ++value)
    if (isTable(op.valueMap(value)))
      return true;
  return false;
}

/// Whether bit \p step of the lane of \p ii is set: a constant of a vector.
static Value laneHas(Ops &o, Value ii, int64_t lanes, int64_t step) {
  Value bit = arith::AndIOp::create(o.b, o.loc, o.mod(ii, lanes), o.i(step));
  return arith::CmpIOp::create(o.b, o.loc, arith::CmpIPredicate::ne, bit,
                               o.i(0));
}

void Streaming::shiftRows(StreamingOffsets &offsets, StringRef name,
                          int direction, Body first) {
  offsets.shifts.push_back(
      func(heed::format("{}0", name), {"ii", "x", "kb"}, 1, first));
  for (int64_t step = 1; step * 2 < plan.lanes; step *= 2)
    offsets.shifts.push_back(
        func((name + Twine(step)).str(), {"ii", "x", "kb"}, 1,
             [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
               return {shiftedBy(o, offsets, TilePlace::ofPair(at),
                                 direction * step)};
             }));
}

Value Streaming::shiftedBy(Ops &o, const StreamingOffsets &offsets,
                           const TilePlace &at, int64_t step) {
  TilePlace moved = at.atKey(o.addi(at.key, o.i(step)));
  halide::FuncOp rows = offsets.shifts.back();
  return o.select(laneHas(o, at.lane, plan.lanes, std::abs(step)),
                  o.read1(rows.getResult(), moved.pair()),
                  o.read1(rows.getResult(), at.pair()));
}

/// The first lane of the vector of lane \p ii.
static Value vectorOf(Ops &o, Value ii, int64_t lanes) {
  return o.muli(o.floorDiv(ii, lanes), o.i(lanes));
}

TilePlace Streaming::rowOfGroup(Ops &o, ArrayRef<Value> args,
                                ArrayRef<Value> loops) {
  TilePlace at = TilePlace::ofPair(args);
  Value inGroup = loops[0], group = loops[1];
  return at.atKey(o.addi(o.muli(group, o.i(plan.group)), inGroup));
}

void Streaming::fillRows(StreamingStage &stage, StreamingOffsets &offsets,
                         Value tensor, AffineMap map, bool always,
                         UpdateBody row) {
  const int64_t group = plan.group;
  auto filling = update(
      offsets.rows, {"y", "rg"},
      {constantI32(b, loc, group), constantI32(b, loc, offsets.count / group)},
      row);
  fill(filling, filling.getAt(),
       [&](Ops &o, ArrayRef<Value> args, ArrayRef<Value> loops) {
         return rowOfGroup(o, args, loops).pair();
       });
  where(filling, [&](Ops &o, ArrayRef<Value> args, ArrayRef<Value> loops) {
    Table table = tableAt(o, stage, tensor, map, TilePlace::ofPair(args));
    Value reached = always ? o.maxi(table.reached, o.i(0)) : table.reached;
    return o.atMost(o.muli(loops[1], o.i(group)), reached);
  });
}

/// A register tile: `group` rows.
void Streaming::sumTableRows(StreamingStage &stage, unsigned term,
                             unsigned number, StreamingTerm &result) {
  const int64_t group = plan.group;
  Value tensor = op.term(term)[number];
  AffineMap map = op.maps(term)[number];
  SmallVector<unsigned> contract = op.contractDims(term);
  StreamingOffsets &offsets = *result.offsets;
  offsets.tile = func(heed::format("{}{}", stage.name("rt"), term),
                      {"ii", "y", "rg", "kb"}, 1,
                      [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
                        return {emptySum(o, contract)};
                      });
  SmallVector<Value> extents;
  for (unsigned c : contract) {
    extents.push_back(size(c).value);
    result.contract.push_back(size(c));
  }
  SmallVector<StringRef> rvars(result.loops.begin(), result.loops.end());
  update(offsets.tile, rvars, extents,
         [&](Ops &o, ArrayRef<Value> args,
             ArrayRef<Value> loops) -> SmallVector<Value> {
           TilePlace at = TilePlace::ofElement(args);
           Value row = tableAt(o, stage, tensor, map, at)
                           .position(o, o.addi(o.muli(at.group, o.i(group)),
                                               at.inGroup));
           at.key = o.i(0);
           return {termSum(o, term, o.read1(offsets.tile.getResult(), args),
                           termOperands(o, stage, term, at, loops, row))};
         });
}

/// Whether rows of the table of \p term lie apart, as those of one head among
/// others: the processor fetches no row ahead then.
void Streaming::findApart(unsigned term, unsigned number,
                          StreamingOffsets &offsets) {
  Value tensor = op.term(term)[number];
  AffineMap map = op.maps(term)[number];
  SmallVector<unsigned> contract = op.contractDims(term);
  auto type = cast<ShapedType>(tensor.getType());
  if (contract.size() != 1 || !isDense(map, contract) ||
      !size(contract[0]).fixed || type.getElementTypeBitWidth() != 32)
    return;
  int64_t apart = 1, row = *size(contract[0]).fixed;
  for (int64_t axis = type.getRank(); axis-- > 0;) {
    if (std::optional<int> sign = op.offsetSign(map.getResult(axis))) {
      if (*sign > 0 && apart > row)
        offsets.apartIn = inputs.lookup(tensor);
      break;
    }
    if (type.isDynamicDim(axis))
      return;
    apart *= type.getDimSize(axis);
  }
  offsets.row = row;
  offsets.apart = apart;
}

/// R(x, ...): the term of each row that a block reaches; and T, whose lanes are
/// rows shifted.
void Streaming::stageTableTerm(StreamingStage &stage, unsigned term,
                               unsigned number) {
  Value tensor = op.term(term)[number];
  AffineMap map = op.maps(term)[number];
  StreamingTerm result = termOf(term);
  StreamingOffsets &offsets = result.offsets.emplace();
  offsets.count = llvm::alignTo(stage.block + plan.tile - 1, plan.group);
  std::string suffix = heed::format("{}", term);

  sumTableRows(stage, term, number, result);
  findApart(term, number, offsets);
  auto none = [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
    return {halide::UndefOp::create(o.b, o.loc, o.b.getF32Type())};
  };
  offsets.rows = func(stage.name("rows") + suffix, {"ii", "x", "kb"}, 1, none);
  fillRows(stage, offsets, tensor, map, /*always=*/true,
           [&](Ops &o, ArrayRef<Value> args,
               ArrayRef<Value> loops) -> SmallVector<Value> {
             TilePlace at = TilePlace::ofPair(args);
             at.inGroup = loops[0];
             at.group = loops[1];
             return {o.read1(offsets.tile.getResult(), at.element())};
           });

  shiftRows(offsets, heed::format("{}{}x", stage.name("by"), suffix), -1,
            [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
              TilePlace at = TilePlace::ofPair(args);
              Table table = tableAt(o, stage, tensor, map, at);
              // Of rows that no pair reads any will do.
              at.key =
                  o.clamp(o.subi(o.addi(o.mini(table.start, o.i(plan.tile - 1)),
                                        at.key),
                                 vectorOf(o, at.lane, plan.lanes)),
                          o.maxi(table.reached, o.i(0)));
              return {o.read1(offsets.rows.getResult(), at.pair())};
            });
  result.func = func(
      stage.name("t") + suffix, {"ii", "jj", "kb"}, 1,
      [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
        return {shiftedBy(o, offsets, TilePlace::ofPair(at), -plan.lanes / 2)};
      });
  offsets.operand = number;
  stage.terms.push_back(std::move(result));
}

/// The term of a pair whose key is in a group. Where all queries of the tile
/// and all keys of the group meet one end of the table, no row is moved.
Value Streaming::tableTerm(Ops &o, StreamingStage &stage, unsigned term,
                           const TilePlace &at) {
  StreamingOffsets &offsets = *stage.terms[term].offsets;
  Table table = tableAt(o, stage, op.term(term)[offsets.operand],
                        op.maps(term)[offsets.operand], at);
  Value row = o.addi(table.start, o.muli(at.group, o.i(plan.group)));
  Value before = o.atMost(o.addi(row, o.i(plan.group - 1)), o.i(0));
  Value behind = o.atMost(table.last, o.addi(row, o.i(1 - plan.tile)));
  TilePlace end =
      at.atKey(o.select(before, o.i(0), o.maxi(table.reached, o.i(0))));
  return o.select(arith::OrIOp::create(o.b, o.loc, before, behind),
                  o.read1(offsets.rows.getResult(), end.pair()),
                  o.read1(stage.terms[term].func.getResult(), at.pair()));
}

/// The sum of the weights of keys beyond an end of the table.
halide::FuncOp Streaming::endWeights(StreamingStage &stage, unsigned value,
                                     bool high) {
  Value tensor = op.getValues()[value];
  AffineMap map = op.valueMap(value);
  auto sum =
      func(heed::format("{}{}", stage.name(high ? "above" : "below"), value),
           {"ii", "kb"}, 1, [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
             return {absentWeight(o)};
           });
  auto add =
      update(sum, {"rj"}, {stage.keys},
             [&](Ops &o, ArrayRef<Value> args,
                 ArrayRef<Value> loops) -> SmallVector<Value> {
               TilePlace at = TilePlace::ofRow(args).atKey(loops[0]);
               Table table = tableAt(o, stage, tensor, map, at);
               Value p = o.read(stage.weights.getResult(), at.pair()).front();
               Value state = o.read1(sum.getResult(), args);
               Value row = o.subi(o.addi(table.start, at.key), at.lane);
               Value beyond = high ? mutated("streaming.last-offset-is-beyond")
                                         ? o.atMost(table.last, row)
                                         : o.less(table.last, row)
                                   : o.less(row, o.i(0));
               if (stage.partial)
                 beyond = o.both(beyond, isLive(o, p));
               return {o.select(
                   beyond, o.add(o.select(isLive(o, state), state, o.f(0)), p),
                   state)};
             });
  where(add, [&](Ops &o, ArrayRef<Value> args, ArrayRef<Value> loops) {
    Table table = tableAt(o, stage, tensor, map, TilePlace::ofRow(args));
    Value row = o.addi(table.start, loops[0]);
    return high ? o.less(table.last, row)
                : o.less(o.addi(row, o.i(1 - plan.tile)), o.i(0));
  });
  return sum;
}

/// W, and the weights beyond the ends.
void Streaming::stageTableValue(StreamingStage &stage, unsigned value) {
  Value tensor = op.getValues()[value];
  AffineMap map = op.valueMap(value);
  StreamingOffsets &offsets = stage.offsets.emplace_back();
  offsets.operand = value;
  offsets.count = llvm::alignTo(stage.block + plan.tile - 1, plan.group);
  std::string suffix = heed::format("{}", value);
  shiftRows(
      offsets, heed::format("{}{}x", stage.name("wby"), suffix), 1,
      [&](Ops &o, ArrayRef<Value> args) -> SmallVector<Value> {
        TilePlace at = TilePlace::ofPair(args);
        Table table = tableAt(o, stage, tensor, map, at);
        // The key of the vector's first query.
        Value key = o.subi(o.addi(at.key, vectorOf(o, at.lane, plan.lanes)),
                           o.mini(table.start, o.i(plan.tile - 1)));
        at.key = o.clamp(key, o.last(stage.keys));
        Value inside = o.both(o.atMost(o.i(0), key), o.less(key, stage.keys));
        return {o.select(inside,
                         o.read(stage.weights.getResult(), at.pair()).front(),
                         absentWeight(o))};
      });
  offsets.rows =
      func(stage.name("w") + suffix, {"ii", "x", "kb"}, 1,
           [&](Ops &o, ArrayRef<Value>) -> SmallVector<Value> {
             return {halide::UndefOp::create(o.b, o.loc, o.b.getF32Type())};
           });
  fillRows(stage, offsets, tensor, map, /*always=*/false,
           [&](Ops &o, ArrayRef<Value> args,
               ArrayRef<Value> loops) -> SmallVector<Value> {
             return {shiftedBy(o, offsets, rowOfGroup(o, args, loops),
                               plan.lanes / 2)};
           });
  offsets.low = endWeights(stage, value, /*high=*/false);
  offsets.high = endWeights(stage, value, /*high=*/true);
}

void Streaming::addTableValues(StreamingStage &stage) {
  for (StreamingOffsets &offsets : stage.offsets) {
    Value tensor = op.getValues()[offsets.operand];
    AffineMap map = op.valueMap(offsets.operand);
    // The products so far and those of weight p with a row.
    auto sum = [&](Ops &o, const TilePlace &at, Value p,
                   Value position) -> Value {
      SmallVector<Value> dims = place(o, at.batch, o.i(0), o.i(0));
      if (Value d = valueDim(o, at))
        dims[op.firstDim(DimKind::Value)] = d;
      Value v = operand(o, tensor, map, dims, position);
      Value state = o.read1(stage.products.getResult(), at.element());
      return o.select(isLive(o, p), o.fma(state, p, v), state);
    };
    auto whereTable =
        [&](halide::UpdateOp update,
            llvm::function_ref<Value(Ops &, const Table &, Value)> condition) {
          where(update, [&](Ops &o, ArrayRef<Value> args,
                            ArrayRef<Value> loops) {
            return condition(
                o, tableAt(o, stage, tensor, map, TilePlace::ofElement(args)),
                loops[0]);
          });
        };
    whereTable(
        update(stage.products, {"rx"}, {constantI32(b, loc, offsets.count)},
               [&](Ops &o, ArrayRef<Value> args,
                   ArrayRef<Value> loops) -> SmallVector<Value> {
                 TilePlace at = TilePlace::ofElement(args).atKey(loops[0]);
                 return {sum(
                     o, at, o.read1(offsets.rows.getResult(), at.pair()),
                     tableAt(o, stage, tensor, map, at).position(o, at.key))};
               }),
        [&](Ops &o, const Table &table, Value x) {
          return o.atMost(x, table.reached);
        });
    whereTable(
        update(stage.products, {"re"}, {constantI32(b, loc, 2)},
               [&](Ops &o, ArrayRef<Value> args,
                   ArrayRef<Value> loops) -> SmallVector<Value> {
                 TilePlace at = TilePlace::ofElement(args);
                 Value isLow = o.less(loops[0], o.i(1));
                 Value p =
                     o.select(isLow, o.read1(offsets.low.getResult(), at.row()),
                              o.read1(offsets.high.getResult(), at.row()));
                 Table table = tableAt(o, stage, tensor, map, at);
                 Value first = o.i(0), last = table.last;
                 if (table.reversed)
                   std::swap(first, last);
                 return {sum(o, at, p, o.select(isLow, first, last))};
               }),
        [&](Ops &o, const Table &table, Value end) {
          return o.select(
              o.less(end, o.i(1)), o.less(table.start, o.i(plan.tile - 1)),
              o.less(table.last, o.addi(table.start, o.i(stage.block - 1))));
        });
  }
}
