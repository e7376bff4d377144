//===- StreamingAttention.cpp - attention without an N x M buffer ---------===//
// For a tile of TQ queries (vector lanes) and a block of B keys:
//
//   Q  [e][TQ]     queries, transposed once per tile
//   S  [B/8][TQ]   tuple of 8 scores and their maximum, in the log2 domain
//   P  [B][TQ]     2^(S - m), m the block's maximum rounded to an integer
//   st [F/8][TQ]   tuple (8 accumulators, m, l), merged over the blocks: a
//                  rescale is a multiplication by 2^integer
//
// Other normalisers have weights P = map(S) without a maximum, and l only where
// they are divided by it.
//
// Full blocks and partial ones are two updates of st, with copies of S and P of
// their own; only the second evaluates the mask. There a weight below zero
// marks an absent key, whose product is selected away: NaN in K or V does not
// show. Without a mask the only partial block is of the last keys: st begins
// with it, and its loop over V ends with the keys.
//
// Q and the score terms are in StreamingScores.cpp, S, P and the merge in
// StreamingBlock.cpp, operands by offset in StreamingOffsets.cpp, tiles and
// schedule in StreamingPlan.cpp; here are the state, the output, and what the
// others share.
#include "passes/Schedule/StreamingAttention.h"
#include "passes/Schedule/Schedule.h"
#include "passes/Schedule/StreamingBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;
using namespace heed::streaming;
using attn::DimKind;

halide::FuncOp Streaming::func(StringRef name, ArrayRef<StringRef> own,
                               unsigned elements, Body body) {
  SmallVector<std::string> names(own.begin(), own.end());
  names.push_back("ib");
  for (unsigned k = batchDims; k-- > 0;)
    names.push_back("b" + std::to_string(k));
  SmallVector<StringRef> vars(names.begin(), names.end());
  SmallVector<Type> types(elements, b.getF32Type());
  return halide::FuncOp::create(
      b, loc, name, vars, types,
      [&](OpBuilder &inner, Location where, ValueRange args) {
        Ops o{inner, where};
        return body(o, SmallVector<Value>(args));
      });
}

halide::UpdateOp Streaming::update(halide::FuncOp func,
                                   ArrayRef<StringRef> rvars,
                                   ArrayRef<Value> extents, Body body) {
  SmallVector<Value> bounds;
  for (Value extent : extents) {
    bounds.push_back(constantI32(b, loc, 0));
    bounds.push_back(extent);
  }
  auto update =
      halide::UpdateOp::create(b, loc, func.getResult(), rvars, bounds);
  update.fill(b, update.getSet(),
              [&](OpBuilder &inner, Location where, ValueRange args) {
                Ops o{inner, where};
                return body(o, SmallVector<Value>(args));
              });
  return update;
}

Extent Streaming::size(unsigned dim) {
  Value value = scalars.lookup(op.getSizes()[dim]);
  Extent extent{IndexMath::narrow(b, loc, value), std::nullopt};
  APInt constant;
  if (matchPattern(op.getSizes()[dim], m_ConstantInt(&constant)))
    extent.fixed = constant.getSExtValue();
  return extent;
}

SmallVector<Value> Streaming::batchAt(Ops &o, ArrayRef<Value> batch) {
  SmallVector<Value> values(batch);
  if (batchDims == op.numDims(DimKind::Batch))
    return values;
  values.erase(values.begin());
  values[0] = o.addi(o.muli(batch[1], plan.members), batch[0]);
  return values;
}

SmallVector<Value> Streaming::ofGroup(Ops &o, ArrayRef<Value> dims,
                                      ArrayRef<Value> batch) {
  SmallVector<Value> values(dims);
  unsigned inner = op.numDims(DimKind::Batch) - 1;
  if (batchDims > inner + 1)
    values[inner] = o.muli(batch[1], plan.members);
  return values;
}

SmallVector<Value> Streaming::place(Ops &o, ArrayRef<Value> batch, Value i,
                                    Value j) {
  SmallVector<Value> dims(numDims);
  // Vars stand innermost first.
  for (auto [k, value] : llvm::enumerate(llvm::reverse(batchAt(o, batch))))
    dims[k] = value;
  dims[op.firstDim(DimKind::Query)] = i;
  dims[op.firstDim(DimKind::Key)] = j;
  return dims;
}

Value Streaming::operand(Ops &o, Value tensor, AffineMap map,
                         ArrayRef<Value> dims, Value row) {
  SmallVector<Value> symbols, at;
  for (Value symbol : op.getSymbols())
    symbols.push_back(scalars.lookup(symbol));
  // Dims that the map does not use may have no value here.
  SmallVector<Value> known(dims);
  for (Value &dim : known)
    if (!dim)
      dim = o.i(0);
  IndexMath math(o.b, loc, tensors.largest);
  for (auto [axis, expr] : llvm::enumerate(map.getResults())) {
    if (row && op.offsetSign(expr)) {
      at.push_back(row);
      continue;
    }
    // In range by the language's rules, in i64; offsets to their table's ends.
    Value c =
        IndexMath::narrow(o.b, loc, expandAffine(math, expr, known, symbols));
    if (!isa<AffineDimExpr>(expr)) {
      FailureOr<Extent> extent = tensors.extent(o.b, tensor, axis);
      failedRead |= failed(extent);
      if (succeeded(extent))
        c = o.clamp(c, o.last(extent->value));
    }
    at.push_back(c);
  }
  FailureOr<Value> value = tensors.read(o.b, loc, tensor, at);
  failedRead |= failed(value);
  if (failed(value))
    return o.f(0);
  if (auto read = value->getDefiningOp<halide::ReadOp>();
      read && read.getFunc().getDefiningOp<halide::BufferOp>())
    inputs[tensor] = read.getFunc();
  return value->getType().isF32()
             ? *value
             : arith::ExtFOp::create(o.b, loc, o.b.getF32Type(), *value)
                   .getResult();
}

Value Streaming::region(Ops &o, Region &region, ArrayRef<Value> batch, Value i,
                        Value j, ArrayRef<Value> more) {
  IRMapping map = scalars;
  SmallVector<Value> arguments(llvm::reverse(batchAt(o, batch)));
  arguments.push_back(i);
  arguments.push_back(j);
  SmallVector<Value> loops = arguments;
  arguments.append(more.begin(), more.end());
  for (auto [arg, value] : llvm::zip(region.getArguments(), arguments))
    map.map(arg, value);
  if (failed(translateBody(o.b, region.front(), map, loops, tensors))) {
    failedRead = true;
    return o.f(0);
  }
  return map.lookup(region.front().getTerminator()->getOperand(0));
}
Streaming::Total Streaming::total(Ops &o, ArrayRef<Value> at) {
  SmallVector<Value> first{at[0], o.i(0)};
  first.append(at.begin() + 1, at.end());
  SmallVector<Value> values = o.read(plan.state.getResult(), first);
  Total total{shifted ? values[topElement()] : Value(), values[sumElement()],
              o.f(1), values[sumElement()]};
  Value sink = op.getSink();
  if (!sink)
    return total;
  ArrayRef<Value> rest = at.drop_front(1);
  SmallVector<Value> dims =
      place(o, rest.drop_front(), query(o, rest.front(), at[0]), Value());
  Value t = o.mul(operand(o, sink, *op.getSinkMap(), dims), o.f(log2e));
  // Merged like a block with one key and no value; the exact exponential, as
  // t - top may be any number.
  Value top = o.larger(total.top, math::RoundEvenOp::create(o.b, o.loc, t));
  total.rescale = o.power(o.sub(total.top, top));
  total.sum =
      o.fma(math::ExpOp::create(o.b, o.loc, o.mul(o.sub(t, top), o.f(ln2))),
            total.sum, total.rescale);
  total.top = top;
  return total;
}

Value Streaming::resultAt(Ops &o, Value lane, Value d, ArrayRef<Value> rest) {
  SmallVector<Value> at{lane, d};
  halide::FuncOp from = plan.divided;
  if (plan.rowsOut) {
    std::swap(at[0], at[1]);
    from = plan.rowsOut;
  }
  llvm::append_range(at, rest);
  return o.read1(from.getResult(), at);
}

/// Division, and the output in its own layout.
StreamingResults Streaming::finish() {
  const int64_t group = plan.group;
  Value state = plan.state.getResult();
  if (summed)
    plan.scale = func(
        "scale", {"ii"}, 1,
        [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
          auto [top, l, c, keysAlone] = total(o, at);
          // A row without a live key: the sum over its keys is 0, whatever its
          // sink is. Weights that may add up to 0 leave a sum of absent ones at
          // -0, where it began.
          Value none =
              shifted
                  ? arith::CmpFOp::create(o.b, o.loc, arith::CmpFPredicate::OEQ,
                                          keysAlone, o.f(0))
                        .getResult()
                  : arith::CmpIOp::create(o.b, o.loc, arith::CmpIPredicate::eq,
                                          o.bits(keysAlone), o.bits(o.zero()))
                        .getResult();
          // A factor of -1 is below any other: 0 or NaN become -1 or NaN.
          Value empty = o.f(shifted ? -1 : 0);
          if (op.getEmpty())
            empty = o.add(scalars.lookup(op.getEmpty()), empty);
          return {o.select(none, empty, o.div(c, l))};
        });
  plan.divided =
      func("tile", {"ii", "d"}, 1,
           [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
             ArrayRef<Value> rest = at.drop_front(2);
             SmallVector<Value> place{at[0], o.floorDiv(at[1], group)},
                 row{at[0]};
             place.append(rest.begin(), rest.end());
             row.append(rest.begin(), rest.end());
             SmallVector<Value> values = o.read(state, place);
             values.resize(group);
             Value value = halide::MuxOp::create(o.b, o.loc, o.b.getF32Type(),
                                                 o.mod(at[1], group), values);
             if (!summed)
               return {value};
             Value factor = o.read1(plan.scale.getResult(), row);
             Value scaled = o.mul(value, factor);
             if (!shifted)
               return {scaled};
             // A row without a live key: keys that are there with scores of
             // -inf leave 0 times their values in the accumulators, no 0 for
             // inf and NaN.
             Value none = arith::CmpFOp::create(
                 o.b, o.loc, arith::CmpFPredicate::OLT, factor, o.f(0));
             return {o.select(none, o.f(0), scaled)};
           });

  if (op.numDims(DimKind::Value) == 1 && plan.form != StreamingForm::Rows) {
    Ops outside{b, loc};
    Value last = outside.last(
        outside.alignTo(size(op.firstDim(DimKind::Value)), plan.group));
    plan.rowsOut =
        turned("rows_out", {"d", "ii"}, plan.rowsOutSteps,
               [&](Ops &o, Value d, Value lane, ArrayRef<Value> rest) {
                 SmallVector<Value> at{lane, o.mini(d, last)};
                 llvm::append_range(at, rest);
                 return o.read1(plan.divided.getResult(), at);
               });
  }
  if (op.getLse() && !op.getLse().use_empty())
    return finishWithLse();
  AffineMap map = op.outputMap();
  auto type = cast<RankedTensorType>(op.getOutput().getType());
  SmallVector<std::string> names;
  for (int64_t axis = type.getRank(); axis-- > 0;)
    names.push_back("d" + std::to_string(axis));
  SmallVector<StringRef> vars(names.begin(), names.end());
  plan.output = halide::FuncOp::create(
      b, loc, "o", vars, type.getElementType(),
      [&](OpBuilder &inner, Location where,
          ValueRange args) -> SmallVector<Value> {
        Ops o{inner, where};
        SmallVector<Value> dims(numDims, o.i(0));
        for (auto [axis, expr] : llvm::enumerate(map.getResults()))
          dims[cast<AffineDimExpr>(expr).getPosition()] =
              args[type.getRank() - 1 - axis];
        Value i = dims[op.firstDim(DimKind::Query)];
        Value d = op.numDims(DimKind::Value) ? dims[op.firstDim(DimKind::Value)]
                                             : o.i(0);
        SmallVector<Value> rest{o.floorDiv(i, plan.tile)};
        for (unsigned k = batchDims; k-- > 0;)
          rest.push_back(dims[k]);
        Value value = resultAt(o, o.mod(i, plan.tile), d, rest);
        if (!type.getElementType().isF32())
          value = arith::TruncFOp::create(inner, where, type.getElementType(),
                                          value);
        return {value};
      });
  for (auto [axis, expr] : llvm::enumerate(map.getResults())) {
    unsigned dim = cast<AffineDimExpr>(expr).getPosition();
    std::string var = "d" + std::to_string(axis);
    plan.outputVars[dim] = var;
    plan.outputExtents[dim] = size(dim);
  }
  return {plan.output, {}};
}

/// A tile writes its rows with their log-sum-exp behind them, in a func of its
/// own; the results are read out of it. Halide computes no tile for two outputs
/// at once.
StreamingResults Streaming::finishWithLse() {
  plan.lse = func(
      "lse", {"ii"}, 1, [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
        auto [top, l, c, keysAlone] = total(o, at);
        Value log =
            o.add(math::LogOp::create(o.b, o.loc, l), o.mul(top, o.f(ln2)));
        Value isNaN =
            arith::CmpFOp::create(o.b, o.loc, arith::CmpFPredicate::UNO, l, l);
        return {o.select(isNaN, l, log)};
      });
  unsigned queryDim = op.firstDim(DimKind::Query),
           valueDim = op.firstDim(DimKind::Value);
  bool hasValueDim = op.numDims(DimKind::Value) == 1;
  Value columns = hasValueDim ? size(valueDim).value : Ops{b, loc}.i(1);
  SmallVector<std::string> names{"column", "i"};
  for (unsigned k = batchDims; k-- > 0;) {
    names.push_back("b" + std::to_string(k));
    plan.outputVars[k] = names.back();
  }
  plan.outputVars[queryDim] = "i";
  plan.outputVars[valueDim] = "column";
  if (hasValueDim)
    plan.outputExtents[valueDim] = size(valueDim);
  SmallVector<StringRef> vars(names.begin(), names.end());
  plan.output = halide::FuncOp::create(
      b, loc, "rows", vars, b.getF32Type(),
      [&](OpBuilder &inner, Location where,
          ValueRange args) -> SmallVector<Value> {
        Ops o{inner, where};
        SmallVector<Value> row{o.mod(args[1], plan.tile)};
        row.push_back(o.floorDiv(args[1], plan.tile));
        llvm::append_range(row, args.drop_front(2));
        return {o.select(o.less(args[0], columns),
                         resultAt(o, row[0], o.mini(args[0], o.last(columns)),
                                  ArrayRef(row).drop_front()),
                         o.read1(plan.lse.getResult(), row))};
      });
  Value rows = plan.output.getResult();
  auto result = [&](StringRef name, Type element, unsigned rank,
                    llvm::function_ref<unsigned(unsigned)> dimOf, bool isLse) {
    SmallVector<std::string> names;
    for (unsigned axis = rank; axis-- > 0;)
      names.push_back("d" + std::to_string(axis));
    SmallVector<StringRef> vars(names.begin(), names.end());
    return halide::FuncOp::create(
        b, loc, name, vars, element,
        [&](OpBuilder &inner, Location where,
            ValueRange args) -> SmallVector<Value> {
          Ops o{inner, where};
          SmallVector<Value> dims(numDims, o.i(0));
          for (unsigned axis = 0; axis < rank; ++axis)
            dims[dimOf(axis)] = args[rank - 1 - axis];
          SmallVector<Value> at{isLse         ? columns
                                : hasValueDim ? dims[valueDim]
                                              : o.i(0),
                                dims[queryDim]};
          for (unsigned k = batchDims; k-- > 0;)
            at.push_back(dims[k]);
          Value value = o.read1(rows, at);
          if (!element.isF32())
            value = arith::TruncFOp::create(inner, where, element, value);
          return {value};
        });
  };
  AffineMap map = op.outputMap();
  auto type = cast<RankedTensorType>(op.getOutput().getType());
  StreamingResults results;
  results.output = result(
      "o", type.getElementType(), type.getRank(),
      [&](unsigned axis) {
        return cast<AffineDimExpr>(map.getResult(axis)).getPosition();
      },
      false);
  results.lse = result(
      "l", b.getF32Type(), batchDims + 1, [](unsigned axis) { return axis; },
      true);
  return results;
}

SmallVector<Value> Streaming::initialState(Ops &o) {
  SmallVector<Value> values(plan.group, o.f(0));
  if (shifted)
    values.push_back(o.f(lowest));
  if (summed)
    values.push_back(shifted ? o.f(0) : o.zero());
  return values;
}

FailureOr<StreamingResults> Streaming::run() {
  batchDims = op.numDims(DimKind::Batch);
  numDims = op.numLoopDims();
  Extent n = size(op.firstDim(DimKind::Query)),
         m = size(op.firstDim(DimKind::Key));
  queries = n.value;
  keys = m.value;
  plan.chooseTiles(n, m, batchDims);
  for (unsigned dim = op.firstDim(DimKind::Contract); dim < numDims; ++dim)
    plan.keyRow.push_back(size(dim));
  bool masked = !op.getWhere().empty();
  if (masked && bounds) {
    tiling = {plan.tile, plan.block, plan.piece, queries, keys};
    if (plan.form == StreamingForm::Rows && bounds->needsTables()) {
      // Those of tiles serve here, too: a pipeline less.
      StreamingPlan tiles(op, plan.target, StreamingForm::Tiles);
      tiles.chooseTiles(n, m, batchDims);
      tiling.tile = tiles.tile;
      tiling.block = tiles.block;
      tiling.piece = plan.block = plan.piece = tiles.piece;
    }
    mask.emplace(b, loc, *bounds, tiling, scalars, tensors);
  }
  if (plan.form == StreamingForm::Rows)
    cutGroups();
  batchDims += plan.members != nullptr;
  stageQueries();
  batchDims = op.numDims(DimKind::Batch);
  SmallVector<Extent> batch;
  for (unsigned k = 0; k < batchDims; ++k)
    batch.push_back(size(k));
  if (failed(plan.form == StreamingForm::Rows ? rows(batch, m.fixed)
                                              : stageBlocks(m)))
    return failure();
  StreamingResults results = finish();
  if (failedRead || (mask && mask->failed()))
    return failure();
  if (plan.form == StreamingForm::Rows)
    plan.scheduleRows(b, loc);
  else
    plan.schedule(b, loc, batch);
  if (results.lse) // both are read out of the rows
    for (halide::FuncOp f : {results.output, results.lse}) {
      vectorizeInner(b, f, 0, varsOf(f).front(), plan.lanes);
      parallelOuter(b, f, 0, varsOf(f), 1);
    }
  return results;
}

/// Whether \p region yields its last argument times something that does not
/// depend on it.
static bool isLinear(Region &region) {
  Block &body = region.front();
  Value weight = body.getArguments().back();
  Value value = body.getTerminator()->getOperand(0);
  llvm::SmallPtrSet<Value, 8> tainted{weight};
  for (Operation &inner : body.without_terminator())
    if (llvm::any_of(inner.getOperands(),
                     [&](Value v) { return tainted.contains(v); }))
      tainted.insert(inner.result_begin(), inner.result_end());
  while (value != weight) {
    Operation *def = value.getDefiningOp();
    if (!def || def->getBlock() != &body || !tainted.contains(value))
      return false;
    if (isa<arith::NegFOp>(def)) {
      value = def->getOperand(0);
      continue;
    }
    if (!isa<arith::MulFOp, arith::DivFOp>(def))
      return false;
    bool left = tainted.contains(def->getOperand(0)),
         right = tainted.contains(def->getOperand(1));
    if (left == right || (right && isa<arith::DivFOp>(def)))
      return false;
    value = def->getOperand(right);
  }
  return true;
}

StringRef heed::whyNotStreaming(attn::AttentionOp op) {
  if (op.numDims(DimKind::Query) != 1 || op.numDims(DimKind::Key) != 1)
    return "it has several query or key dims";
  if (op.numDims(DimKind::Value) > 1)
    return "it has several value dims";
  // Divided, an exponential may be taken less any maximum.
  if (op.getMap() == attn::Map::Exp && op.getStabilise() && !op.getDivide())
    return "its exponentials of differences from the maximum are not divided";
  if (!op.getWeight().empty() && op.getDivide() && !isLinear(op.getWeight()))
    return "the factor after its normaliser is no product with the weight";
  if (op.getWeights() && !op.getWeights().use_empty())
    return "its weights are a result";
  if (op.getLse() && !op.getDivide())
    return "its log-sum-exp is a result, and it is not divided by the sum";
  return "";
}

FailureOr<StreamingResults>
heed::buildStreamingAttention(OpBuilder &b, attn::AttentionOp op,
                              const IRMapping &scalars, TensorReads &tensors,
                              const halide::Target &target, StreamingForm form,
                              const MaskBounds *bounds, MaskTiling &tiling) {
  return Streaming(b, op, scalars, tensors, target, form, bounds, tiling).run();
}
