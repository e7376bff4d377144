//===- StreamingAttention.cpp - attention without an N x M buffer ---------===//
// For a tile of TQ queries (vector lanes) and a block of B keys:
//
//   Q  [e][TQ]     queries, transposed once per tile
//   S  [B/8][TQ]   tuple of 8 scores and their maximum, times log4 e
//   P  [B][TQ]     4^(S - m), m the block's maximum rounded to an integer
//   st [F/8][TQ]   tuple (8 accumulators, m, l), merged over the blocks: a
//                  rescale is a multiplication by 4^integer
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
// schedule in StreamingPlan.cpp, the output in StreamingResults.cpp; here are
// the state and what the others share.
#include "passes/Lower/StreamingAttention.h"
#include "passes/Lower/StreamingBuilder.h"
#include "passes/Mutation.h"
#include "passes/Plan/AttentionPlan.h"
#include "passes/Schedule/Schedule.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace heed;
using namespace heed::streaming;
using attn::DimKind;

StreamingPlan heed::streaming::planOf(attn::OnlineAttentionOp op,
                                      const halide::Target &target,
                                      attn::Form form) {
  attn::PipelineAttr pipeline = op.plan().pipeline(form);
  StreamingPlan plan;
  plan.target = target;
  plan.byRow = form == attn::Form::Rows;
  plan.lanes = target.lanes(32);
  plan.careful = op.plan().getExcluding();
  plan.tile = pipeline.getQueries();
  plan.block = pipeline.getBlock();
  plan.piece = pipeline.getPiece();
  plan.group = plan.byRow ? 1 : registerGroup(target);
  plan.keyGroup = plan.group;
  plan.bySplit = form == attn::Form::Split;
  if (plan.bySplit) {
    plan.keyGroup = keysOfSplitThread;
  } else if (target.isGPU()) {
    plan.ownQueries = queriesOfThread(op, target);
    plan.keyGroup = keysOfThread(op, target, plan.tile, plan.block);
    plan.moreRegisters = needsMoreRegisters(op, target);
  }
  plan.vectors = plan.byRow ? 1 : plan.tile / plan.lanes;
  // On a GPU all blocks are like those of a mask: one loop.
  plan.masked = plan.careful || !op.getWhere().empty() || plan.target.isGPU();
  return plan;
}

halide::FuncOp Streaming::func(StringRef name, ArrayRef<StringRef> own,
                               ArrayRef<Type> types, Body body) {
  SmallVector<std::string> names(own.begin(), own.end());
  names.push_back("ib");
  for (unsigned k = batchDims; k-- > 0;)
    names.push_back(heed::format("b{}", k));
  SmallVector<StringRef> vars(names.begin(), names.end());
  return halide::FuncOp::create(
      b, loc, name, vars, types,
      [&](OpBuilder &inner, Location where, ValueRange args) {
        Ops o{inner, where};
        return body(o, SmallVector<Value>(args));
      });
}

halide::UpdateOp Streaming::update(halide::FuncOp func,
                                   ArrayRef<StringRef> rvars,
                                   ArrayRef<Value> extents, UpdateBody body) {
  auto update =
      halide::UpdateOp::over(b, loc, func.getResult(), rvars, extents);
  fill(update, update.getSet(), body);
  return update;
}

void Streaming::fill(halide::UpdateOp update, Region &region, UpdateBody body) {
  size_t loops = update.getRvars().size();
  update.fill(b, region,
              [&](OpBuilder &inner, Location where, ValueRange args) {
                Ops o{inner, where};
                return body(o, SmallVector<Value>(args.drop_back(loops)),
                            SmallVector<Value>(args.take_back(loops)));
              });
}

void Streaming::where(halide::UpdateOp update, Condition condition) {
  fill(update, update.getWhere(),
       [&](Ops &o, ArrayRef<Value> at, ArrayRef<Value> loops)
           -> SmallVector<Value> { return {condition(o, at, loops)}; });
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
  SmallVector<Value> at = batchAt(o, batch);
  for (auto [k, value] : llvm::enumerate(llvm::reverse(at)))
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
  FailureOr<Value> value = readInSegment(o, tensor, at);
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
  // A loop's end, where it is known, says that multiples of it fit an i32.
  for (auto [dim, value] : llvm::enumerate(arguments))
    if (KnownExtent known = size(dim).fixed;
        known && *known > 0 &&
        llvm::any_of(region.getArgument(dim).getUsers(),
                     llvm::IsaPred<arith::MulIOp>))
      value = o.mini(value, o.i(*known - 1));
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
  findSegments(m);
  plan.queries = n;
  plan.keys = m;
  plan.batchDims = batchDims;
  for (unsigned dim = op.firstDim(DimKind::Contract); dim < numDims; ++dim)
    plan.keyRow.push_back(size(dim));
  bool masked = !op.getWhere().empty();
  if (masked && bounds) {
    tiling.tile = plan.tile;
    tiling.block = plan.block;
    tiling.piece = plan.piece;
    tiling.queries = queries;
    tiling.keys = keys;
    // Tables are those of tiles, whoever reads them.
    if (attn::PipelineAttr tiles = op.plan().pipeline(attn::Form::Tiles);
        bounds->needsTables()) {
      tiling.tile = tiles.getQueries();
      tiling.block = tiles.getBlock();
      tiling.piece = tiles.getPiece();
    }
    mask.emplace(b, loc, *bounds, tiling, scalars, tensors);
  }
  if (plan.byRow)
    cutGroups();
  batchDims += plan.members != nullptr;
  stageQueries();
  batchDims = op.numDims(DimKind::Batch);
  SmallVector<Extent> batch;
  for (unsigned k = 0; k < batchDims; ++k)
    batch.push_back(size(k));
  if (failed(plan.byRow ? rows(batch) : stageBlocks()))
    return failure();
  StreamingResults results = this->results();
  if (failedRead || (mask && mask->failed()))
    return failure();
  if (onGPU())
    plan.scheduleOnGPU(b, loc);
  else if (plan.byRow)
    plan.scheduleRows(b, loc);
  else
    plan.schedule(b, loc, batch);
  if (results.lse) // both are read out of the rows
    for (halide::FuncOp f : {results.output, results.lse}) {
      if (!f)
        continue;
      vectorizeInner(b, f, 0, varsOf(f).front(), plan.lanes);
      parallelOuter(b, f, 0, varsOf(f), 1, FusedBody::Alone);
    }
  return results;
}

FailureOr<StreamingResults>
heed::buildStreamingAttention(OpBuilder &b, StreamedAttention op,
                              const IRMapping &scalars, TensorReads &tensors,
                              const halide::Target &target, attn::Form form,
                              const MaskBounds *bounds, MaskTiling &tiling) {
  return Streaming(b, op, scalars, tensors, target, form, bounds, tiling).run();
}
