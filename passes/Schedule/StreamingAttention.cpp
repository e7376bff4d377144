//===- StreamingAttention.cpp - attention without an N x M buffer -===//
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
// show.
//
// Q and the score terms are in StreamingScores.cpp, S, P and the merge in
// StreamingBlock.cpp, tiles and schedule in StreamingPlan.cpp; here are the
// state, the output, and what the others share.
#include "passes/Schedule/StreamingAttention.h"
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
  Extent extent{scalars.lookup(op.getSizes()[dim]), std::nullopt};
  APInt constant;
  if (matchPattern(op.getSizes()[dim], m_ConstantInt(&constant)))
    extent.fixed = constant.getSExtValue();
  return extent;
}

SmallVector<Value> Streaming::place(ArrayRef<Value> batch, Value i, Value j) {
  SmallVector<Value> dims(numDims);
  // Vars stand innermost first.
  for (unsigned k = 0; k < batchDims; ++k)
    dims[k] = batch[batchDims - 1 - k];
  dims[op.firstDim(DimKind::Query)] = i;
  dims[op.firstDim(DimKind::Key)] = j;
  return dims;
}

Value Streaming::operand(Ops &o, Value tensor, AffineMap map,
                         ArrayRef<Value> dims) {
  SmallVector<Value> symbols, at;
  for (Value symbol : op.getSymbols())
    symbols.push_back(scalars.lookup(symbol));
  // Dims that the map does not use may have no value here.
  SmallVector<Value> known(dims);
  for (Value &dim : known)
    if (!dim)
      dim = o.i(0);
  for (auto [axis, expr] : llvm::enumerate(map.getResults())) {
    Value c = expandAffine(o.b, loc, expr, known, symbols);
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
  return value->getType().isF32()
             ? *value
             : arith::ExtFOp::create(o.b, loc, o.b.getF32Type(), *value)
                   .getResult();
}

Value Streaming::region(Ops &o, Region &region, ArrayRef<Value> batch, Value i,
                        Value j, ArrayRef<Value> more) {
  IRMapping map = scalars;
  SmallVector<Value> arguments(llvm::reverse(batch));
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
/// Division, and the output in its own layout.
halide::FuncOp Streaming::finish() {
  const int64_t group = plan.group;
  Value state = plan.state.getResult();
  if (summed)
    plan.scale = func(
        "scale", {"ii"}, 1,
        [&](Ops &o, ArrayRef<Value> at) -> SmallVector<Value> {
          SmallVector<Value> first{at[0], o.i(0)};
          first.append(at.begin() + 1, at.end());
          SmallVector<Value> values = o.read(state, first);
          Value l = values[sumElement()], c = o.f(1);
          if (Value sink = op.getSink()) {
            ArrayRef<Value> rest = at.drop_front(1);
            SmallVector<Value> dims = place(
                rest.drop_front(), query(o, rest.front(), at[0]), Value());
            Value t =
                o.mul(operand(o, sink, *op.getSinkMap(), dims), o.f(log2e));
            // Merged like a block with one key and no value; the exact
            // exponential, as t - both may be any number.
            Value m = values[topElement()];
            Value both = o.larger(m, math::RoundEvenOp::create(o.b, o.loc, t));
            c = o.power(o.sub(m, both));
            l = o.fma(math::ExpOp::create(
                          o.b, o.loc,
                          o.mul(o.sub(t, both), o.f(0.69314718055994531))),
                      l, c);
          }
          // A row without a live key: its sum is 0. Weights that may add up to
          // 0 leave a sum of absent ones at -0, where it began.
          Value none =
              shifted
                  ? arith::CmpFOp::create(o.b, o.loc, arith::CmpFPredicate::OEQ,
                                          l, o.f(0))
                        .getResult()
                  : arith::CmpIOp::create(o.b, o.loc, arith::CmpIPredicate::eq,
                                          o.bits(l), o.bits(o.zero()))
                        .getResult();
          return {o.select(none, o.f(0), o.div(c, l))};
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
             // A row without a live key has accumulators of exactly 0.
             return {summed ? o.mul(value, o.read1(plan.scale.getResult(), row))
                            : value};
           });

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
        SmallVector<Value> at{o.mod(i, plan.tile), d, o.floorDiv(i, plan.tile)};
        for (unsigned k = batchDims; k-- > 0;)
          at.push_back(dims[k]);
        Value value = o.read1(plan.divided.getResult(), at);
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
  return plan.output;
}

FailureOr<halide::FuncOp> Streaming::run() {
  batchDims = op.numDims(DimKind::Batch);
  numDims = op.numLoopDims();
  Extent n = size(op.firstDim(DimKind::Query)),
         m = size(op.firstDim(DimKind::Key));
  queries = n.value;
  keys = m.value;
  plan.chooseTiles(n, m, batchDims);
  stageQueries();
  const int64_t group = plan.group;
  plan.state = func("st", {"ii", "dt"}, group + shifted + summed,
                    [&](Ops &o, ArrayRef<Value>) {
                      SmallVector<Value> values(group, o.f(0));
                      if (shifted)
                        values.push_back(o.f(lowest));
                      if (summed)
                        values.push_back(shifted ? o.f(0) : o.zero());
                      return values;
                    });
  bool masked = !op.getWhere().empty();
  if ((!masked || ranges) && failed(stage(/*partial=*/false)))
    return failure();
  bool whole = !masked && m.fixed && *m.fixed % plan.block == 0;
  if (!whole && failed(stage(/*partial=*/true)))
    return failure();
  halide::FuncOp output = finish();
  if (failedRead)
    return failure();
  SmallVector<Extent> batch;
  for (unsigned k = 0; k < batchDims; ++k)
    batch.push_back(size(k));
  plan.schedule(b, loc, batch);
  return output;
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
  if (op.getLse() || op.getWeights())
    return "its log-sum-exp or its weights are results";
  return "";
}

FailureOr<halide::FuncOp>
heed::buildStreamingAttention(OpBuilder &b, attn::AttentionOp op,
                              const IRMapping &scalars, TensorReads &tensors,
                              const halide::Target &target,
                              const KeyRangesFn &ranges) {
  return Streaming(b, op, scalars, tensors, target, ranges).run();
}
