//===- MaskExpressions.cpp - a mask's expressions inside a pipeline -------===//
#include "passes/Lower/MaskExpressions.h"
#include "passes/Mutation.h"
#include "passes/Schedule/StreamingOps.h"

using namespace mlir;
using namespace heed;
using streaming::Ops;

MaskExpressions::Bindings MaskExpressions::tile(OpBuilder &b, Value tile,
                                                ArrayRef<Value> batch) const {
  Ops o{b, loc};
  Value first = o.muli(tile, o.i(tiling.tile));
  Value last =
      o.mini(o.addi(first, o.i(tiling.tile - 1)), o.last(tiling.queries));
  Bindings list{{bounds.first, first},
                {bounds.last, last},
                {bounds.queries, tiling.queries},
                {bounds.keys, tiling.keys}};
  for (auto [var, value] : llvm::zip(bounds.batch, batch))
    if (value)
      list.push_back({var, value});
  return list;
}

Type heed::elementType(const MaskTable &table) {
  Type type = table.value->type;
  return type.isIndex() ? IntegerType::get(type.getContext(), 64) : type;
}

SmallVector<Value> MaskExpressions::writeAsIs(OpBuilder &b,
                                              ArrayRef<ExprRef> roots,
                                              const Bindings &bindings) {
  Block block;
  OpBuilder inner(b.getContext());
  inner.setInsertionPointToStart(&block);
  ExprWriter writer(inner, loc);
  IRMapping map = scalars;
  for (auto [var, value] : bindings) {
    Type type = inner.getIndexType();
    for (const MaskTable &t : bounds.tables) {
      if (var == t.least || var == t.greatest)
        type = t.value->type;
      if (t.odd && var == *t.odd)
        type = inner.getI1Type();
    }
    Value argument = block.addArgument(type, loc);
    writer.bind(var, argument);
    map.map(argument, value);
  }
  SmallVector<Value> results;
  for (ExprRef root : roots)
    results.push_back(writer.write(root));
  if (results.empty())
    return results;
  attn::YieldOp::create(inner, loc, results.front());
  if (mlir::failed(translateBody(b, block, map, {}, tensors))) {
    failed = true;
    return SmallVector<Value>(roots.size(), constantI32(b, loc, 0));
  }
  for (Value &result : results)
    result = map.lookupOrDefault(result);
  return results;
}

SmallVector<Value> MaskExpressions::write(OpBuilder &b, ArrayRef<ExprRef> roots,
                                          const Bindings &bindings) {
  SmallVector<Value> results = writeAsIs(b, roots, bindings);
  // Ends of ranges of keys: what is beyond the keys of any call may lie
  // anywhere there.
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, b.getI64Type(), value);
  };
  for (Value &result : results) {
    if (!result.getType().isInteger(64))
      continue;
    if (!IndexMath::asNarrow(result)) {
      result = arith::MinSIOp::create(b, loc, result, constant(INT32_MAX));
      result = arith::MaxSIOp::create(b, loc, result, constant(0));
    }
    result = IndexMath::narrow(b, loc, result);
  }
  return results;
}

Value MaskExpressions::element(OpBuilder &b, const MaskTable &table,
                               const Bindings &bindings) {
  Value result = writeAsIs(b, {table.value}, bindings).front();
  if (result.getType() == elementType(table))
    return result;
  return arith::ExtSIOp::create(b, loc, elementType(table), result);
}

Value MaskExpressions::extreme(OpBuilder &b, Value x, Value y,
                               bool greatest) const {
  Type type = x.getType();
  if (type.isInteger(1))
    return greatest ? arith::OrIOp::create(b, loc, x, y).getResult()
                    : arith::AndIOp::create(b, loc, x, y).getResult();
  if (isa<IntegerType>(type))
    return greatest ? arith::MaxSIOp::create(b, loc, x, y).getResult()
                    : arith::MinSIOp::create(b, loc, x, y).getResult();
  // A NaN in y is not beyond x.
  auto sign = greatest ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT;
  Value beyond = arith::CmpFOp::create(b, loc, sign, y, x);
  return arith::SelectOp::create(b, loc, beyond, y, x);
}

Value MaskExpressions::blocksBefore(OpBuilder &b, size_t number) const {
  Ops o{b, loc};
  Value blocks = o.i(0), first = o.i(0);
  for (Value cut : ArrayRef(tiling.cuts).take_front(number)) {
    blocks = o.addi(blocks, o.ceilDiv(o.subi(cut, first), o.i(tiling.block)));
    first = cut;
  }
  return blocks;
}

Value MaskExpressions::numPieces(OpBuilder &b) const {
  Ops o{b, loc};
  Value last = tiling.keys;
  if (tiling.cuts.empty())
    return o.floorDiv(o.addi(last, o.i(tiling.piece - 1)), tiling.piece);
  last = o.ceilDiv(o.subi(last, tiling.cuts.back()), o.i(tiling.piece));
  return o.addi(o.muli(blocksBefore(b, tiling.cuts.size()),
                       o.i(tiling.block / tiling.piece)),
                last);
}

MaskExpressions::Keys MaskExpressions::keysOf(OpBuilder &b, Value block,
                                              int64_t size) const {
  Ops o{b, loc};
  Keys keys{o.muli(block, o.i(size)), tiling.keys};
  if (!tiling.cuts.empty())
    keys.end = tiling.cuts.front();
  for (auto [k, cut] : llvm::enumerate(tiling.cuts)) {
    Value before = o.muli(blocksBefore(b, k + 1), o.i(tiling.block / size));
    Value here = o.atMost(before, block);
    keys.low = o.select(
        here, o.addi(cut, o.muli(o.subi(block, before), o.i(size))), keys.low);
    keys.end = o.select(
        here, k + 1 < tiling.cuts.size() ? tiling.cuts[k + 1] : tiling.keys,
        keys.end);
  }
  return keys;
}

Value MaskExpressions::any(OpBuilder &b, ArrayRef<MaskPiece> pieces,
                           int64_t place, bool all, Value block, int64_t size,
                           Value tile, ArrayRef<Value> batch, Row row,
                           Table table) {
  Ops o{b, loc};
  auto [low, end] = keysOf(b, block, size);
  Value high = o.addi(low, o.i(size));
  Bindings bindings = this->tile(b, tile, batch);
  bindings.push_back({bounds.blockFirst, low});
  bindings.push_back(
      {bounds.blockLast, o.mini(o.last(high), o.last(tiling.keys))});
  // Without keys there still is a piece, which holds none.
  Value lastPiece = tiling.cuts.empty()
                        ? o.floorDiv(o.last(tiling.keys), tiling.piece)
                        : o.last(numPieces(b));
  lastPiece = o.maxi(lastPiece, o.i(0));
  for (auto [number, t] : llvm::enumerate(bounds.tables)) {
    SmallVector<Value> values;
    for (int64_t k = 0; k < (t.ofKeys ? size / tiling.piece : 1); ++k) {
      SmallVector<Value> at{tile};
      // Pieces behind the last one are in no range.
      if (t.ofKeys)
        at[0] = o.mini(o.addi(o.muli(block, o.i(size / tiling.piece)), o.i(k)),
                       lastPiece);
      SmallVector<unsigned> dims = bounds.batchOf(t);
      for (unsigned d : llvm::reverse(dims))
        at.push_back(batch[d]);
      SmallVector<Value> more = table(number, at);
      if (k == 0)
        values = more;
      else
        for (auto [element, value] : llvm::enumerate(values))
          value = extreme(b, value, more[element], element != 0);
    }
    bindings.push_back({t.least, values[0]});
    bindings.push_back({t.greatest, values[1]});
    if (t.odd)
      bindings.push_back({*t.odd, values[2]});
  }
  SmallVector<ExprRef> tests;
  for (const MaskPiece &p : pieces)
    if (p.test)
      tests.push_back(p.test);
  SmallVector<Value> holds = write(b, tests, bindings);
  Value result;
  size_t next = 0;
  for (auto [k, p] : llvm::enumerate(pieces)) {
    Value from = row(place + 2 * k), to = row(place + 2 * k + 1);
    Value here = all ? o.both(o.atMost(from, low), o.atMost(high, to))
                     : o.both(o.less(from, to),
                              o.both(o.less(from, high), o.less(low, to)));
    if (p.test)
      here = o.both(here, holds[next++]);
    // What ends behind its segment is not full, whoever sees these keys.
    if (all && !tiling.cuts.empty() &&
        !mutated("mask-tables.full-behind-its-segment"))
      here = o.both(here, o.atMost(high, end));
    result =
        result ? arith::OrIOp::create(b, loc, result, here).getResult() : here;
  }
  return result;
}
