//===- ChunkLinear.cpp - the forms of a linear attention ------------------===//
//
// A step is a product with a vector and adds another to the state: little work
// on much memory. A chunk of steps is products of matrices, and the state
// passes from chunk to chunk; or its steps are taken in order, where columns of
// the state stay in the first cache.
#include "dialects/Attn/Dialect.h"
#include "passes/Algebra/TensorExpr.h"
#include "passes/Algebra/TensorOps.h"
#include "passes/Mutation.h"
#include "passes/Passes.h"
#include "passes/Recurrence/PartsLoop.h"
#include "passes/Recurrence/WidenSums.h"
#include "passes/Recurrence/WriteChunk.h"
#include "passes/Remarks.h"
#include "support/Format.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace heed {
#define GEN_PASS_DEF_ATTNCHUNKLINEARATTENTION
#include "passes/Passes.h.inc"
} // namespace heed

using namespace mlir;
using namespace heed;

namespace {

/// The part of \p tensor, read by \p map, of \p length steps from \p first.
Value stepsOf(OpBuilder &b, attn::LinearAttentionOp op, Value tensor,
              AffineMap map, OpFoldResult first, OpFoldResult length) {
  if (!map.isFunctionOfDim(op.stepDim()))
    return tensor;
  SmallVector<OpFoldResult> offsets, sizes,
      strides(map.getNumResults(), b.getIndexAttr(1));
  for (AffineExpr result : map.getResults()) {
    unsigned dim = cast<AffineDimExpr>(result).getPosition();
    bool isStep = dim == op.stepDim();
    offsets.push_back(isStep ? first : b.getIndexAttr(0));
    sizes.push_back(isStep ? length : getAsOpFoldResult(op.getSizes()[dim]));
  }
  return tensor::ExtractSliceOp::create(b, op.getLoc(), tensor, offsets, sizes,
                                        strides);
}

Value floatConstant(OpBuilder &b, Location loc, double value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}

/// The products of decays that are the same in each step, of \p steps of them.
DecayProducts sameInEach(OpBuilder &b, attn::LinearAttentionOp op,
                         int64_t steps, Value powers) {
  if (!powers || decaysByChannel(op))
    return {};
  return DecayProducts(b, op, op.getDecay(), /*key=*/{}, b.getIndexAttr(steps),
                       /*start=*/{}, powers);
}

/// A chunk without its decays.
LinearChunk sliceAt(OpBuilder &b, attn::LinearAttentionOp op,
                    OpFoldResult first, OpFoldResult length, Value state) {
  auto part = [&](unsigned which) {
    Value whole = op.part(which);
    return whole ? stepsOf(b, op, whole, op.map(which), first, length) : whole;
  };
  using Op = attn::LinearAttentionOp;
  LinearChunk chunk;
  chunk.query = part(Op::Query);
  chunk.key = part(Op::Key);
  chunk.value = part(Op::Values);
  chunk.erase = part(Op::Erase);
  chunk.state = state;
  chunk.length = length;
  return chunk;
}

/// A chunk; \p hasState says whether there is a state yet, null: always, if one
/// is given.
LinearChunk chunkAt(OpBuilder &b, attn::LinearAttentionOp op,
                    const DecayProducts &same, Value powers, OpFoldResult first,
                    OpFoldResult length, Value state, Value hasState = {}) {
  Location loc = op.getLoc();
  LinearChunk chunk = sliceAt(b, op, first, length, state);
  chunk.hasState = hasState;
  if (!op.getDecay())
    return chunk;
  Value decay = stepsOf(b, op, op.getDecay(),
                        op.map(attn::LinearAttentionOp::Decay), first, length);
  chunk.decays = same;
  chunk.sameDecay = same ? decay : Value();
  if (same)
    return chunk;
  Value start = floatConstant(b, loc, state != nullptr);
  if (hasState)
    start = arith::SelectOp::create(b, loc, hasState, start,
                                    floatConstant(b, loc, 0));
  chunk.decays =
      DecayProducts(b, op, decay, decaysByChannel(op) ? chunk.key : Value(),
                    length, start, powers);
  return chunk;
}

SmallVector<OpFoldResult> outputSizes(attn::LinearAttentionOp op) {
  SmallVector<OpFoldResult> sizes;
  for (unsigned dim = 0; dim < op.numLoops(); ++dim)
    if (dim < op.firstContract() || dim >= op.firstValue())
      sizes.push_back(getAsOpFoldResult(op.getSizes()[dim]));
  return sizes;
}

Value emptyOutput(OpBuilder &b, attn::LinearAttentionOp op) {
  return tensor::EmptyOp::create(b, op.getLoc(), outputSizes(op),
                                 getElementTypeOrSelf(op.getOutput()));
}

/// All steps as one chunk.
void writeWhole(attn::LinearAttentionOp op, int64_t steps) {
  OpBuilder b(op);
  Value powers = decayPowers(b, op, steps);
  DecayProducts same = sameInEach(b, op, steps, powers);
  auto [output, state] =
      writeChunk(b, op,
                 chunkAt(b, op, same, powers, b.getIndexAttr(0),
                         b.getIndexAttr(steps), op.getStart()));
  op.getOutput().replaceAllUsesWith(
      castTo(b, output, op.getOutput().getType()));
  op.getState().replaceAllUsesWith(castTo(b, state, op.getState().getType()));
  op.erase();
}

/// The decays of \p length steps from \p first, each a step's, but 1 in place
/// of the first: there is nothing before it. \p map gets how they are read.
Value decaysBehindFirst(OpBuilder &b, attn::LinearAttentionOp op,
                        OpFoldResult first, OpFoldResult length,
                        AffineMap &map) {
  AffineMap given = op.map(attn::LinearAttentionOp::Decay);
  Value decay = stepsOf(b, op, op.getDecay(), given, first, length);
  Exprs exprs(b.getContext());
  SmallVector<unsigned> loops, own;
  SmallVector<AffineExpr> results;
  for (auto [dim, size] : llvm::enumerate(op.getSizes())) {
    bool isStep = dim == op.stepDim();
    loops.push_back(
        exprs.freshVar(isStep ? exprs.fold(length) : exprs.scalar(size)));
    if (!isStep && !given.isFunctionOfDim(dim))
      continue;
    own.push_back(loops[dim]);
    results.push_back(b.getAffineDimExpr(dim));
  }
  SmallVector<ExprRef> at;
  for (AffineExpr result : given.getResults())
    at.push_back(exprs.var(loops[cast<AffineDimExpr>(result).getPosition()]));
  map = AffineMap::get(op.numLoops(), 0, results, b.getContext());
  ExprRef isFirst =
      exprs.compare(arith::CmpIPredicate::slt, exprs.var(loops[op.stepDim()]),
                    exprs.index(1));
  ExprRef element = exprs.select(isFirst, exprs.constant(b.getF32FloatAttr(1)),
                                 exprs.read(decay, at),
                                 /*guard=*/false);
  return writeTensor(b, op.getLoc(), exprs, element, own);
}

/// What the steps of \p chunk make of \p start, or of zeros, one after the
/// other: outputs and the state, of decays that are read by \p map.
std::pair<Value, Value> takeSteps(OpBuilder &b, attn::LinearAttentionOp op,
                                  const LinearChunk &chunk, Value decay,
                                  AffineMap map, Value start, bool fresh) {
  Location loc = op.getLoc();
  SmallVector<Value> sizes(op.getSizes());
  sizes[op.stepDim()] = getValueOrCreateConstantIndexOp(b, loc, chunk.length);
  SmallVector<AffineMap> maps(op.getMaps().getAsValueRange<AffineMapAttr>());
  if (decay)
    maps[attn::LinearAttentionOp::Decay] = map;
  auto type = cast<RankedTensorType>(op.getOutput().getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[op.stepDim()] =
      getConstantIntValue(chunk.length).value_or(ShapedType::kDynamic);
  auto steps = attn::LinearAttentionOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()),
      op.getState().getType(), sizes, chunk.query, chunk.key, chunk.value,
      decay, /*erase=*/Value(), start, op.getNumBatch(), op.getNumContract(),
      op.getNumValue(), b.getAffineMapArrayAttr(maps), /*before=*/false, fresh);
  SmallVector<Value> made = *steps.decomposeOperation(b);
  steps.erase();
  return {made[0], made[1]};
}

/// \p rows of the steps from \p first, in \p out.
Value insertRows(OpBuilder &b, attn::LinearAttentionOp op, Value rows,
                 Value out, OpFoldResult first, OpFoldResult length) {
  SmallVector<OpFoldResult> part = outputSizes(op),
                            offsets(part.size(), b.getIndexAttr(0)),
                            strides(part.size(), b.getIndexAttr(1));
  offsets[op.stepDim()] =
      mutated("chunk.first-place") ? OpFoldResult(b.getIndexAttr(0)) : first;
  part[op.stepDim()] = length;
  return tensor::InsertSliceOp::create(b, op.getLoc(), rows, out, offsets, part,
                                       strides);
}

/// So many chunks may change an f32 by a rounding each: where there are
/// more it is an f64.
constexpr int64_t mostChunksOfF32 = 256;

/// \p state, of \p op, with elements of \p type.
Value stateAs(OpBuilder &b, attn::LinearAttentionOp op, Value state,
              Type type) {
  if (getElementTypeOrSelf(state) == type)
    return state;
  Exprs exprs(b.getContext());
  SmallVector<unsigned> vars;
  SmallVector<ExprRef> at;
  for (auto [dim, size] : llvm::enumerate(op.getSizes()))
    if (dim != op.stepDim()) {
      vars.push_back(exprs.freshVar(exprs.scalar(size)));
      at.push_back(exprs.var(vars.back()));
    }
  auto shape = cast<RankedTensorType>(state.getType()).getShape();
  ExprRef element = inType(exprs, type, exprs.read(state, at));
  return castTo(b, writeTensor(b, op.getLoc(), exprs, element, vars),
                RankedTensorType::get(shape, type));
}

/// \p size steps after another; then a loop over as many at a time, which begin
/// with zeros: to what they make is added what is left of the state before, an
/// f64.
void writeBlocks(attn::LinearAttentionOp op, int64_t size) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value powers = decayPowers(b, op, size);
  DecayProducts same = sameInEach(b, op, size, powers);
  Value steps = op.getSizes()[op.stepDim()],
        block = arith::ConstantIndexOp::create(b, loc, size);
  std::optional<int64_t> known = getConstantIntValue(steps);
  OpFoldResult begin = b.getIndexAttr(0), length = b.getIndexAttr(size);
  if (!known)
    length = arith::MinSIOp::create(b, loc, block, steps).getResult();
  LinearChunk first = sliceAt(b, op, begin, length, op.getStart());
  AffineMap map;
  Value decay;
  if (op.getDecay()) {
    map = op.map(attn::LinearAttentionOp::Decay);
    decay = stepsOf(b, op, op.getDecay(), map, begin, length);
  }
  auto [rows, state] =
      takeSteps(b, op, first, decay, map, op.getStart(), op.getFresh());
  Value out = insertRows(b, op, rows, emptyOutput(b, op), begin, length);
  Type real = b.getF32Type();
  auto write = [&](ValueRange carried, Value at, OpFoldResult length) {
    LinearChunk chunk = chunkAt(b, op, same, powers, at, length,
                                stateAs(b, op, carried[0], real));
    chunk.longState = carried[0];
    AffineMap map;
    Value decay =
        op.getDecay() ? decaysBehindFirst(b, op, at, length, map) : Value();
    std::tie(chunk.ownOutput, chunk.ownState) =
        takeSteps(b, op, chunk, decay, map, /*start=*/{}, /*fresh=*/false);
    auto [rows, state] = writeChunk(b, op, chunk);
    return SmallVector<Value>{mutated("chunk.keep-first-state") ? carried[0]
                                                                : state,
                              insertRows(b, op, rows, carried[1], at, length)};
  };
  state = stateAs(b, op, state, b.getF64Type());
  scf::ForOp loop =
      loopOverParts(b, loc, block, steps, b.getIndexAttr(size),
                    {state, castTo(b, out, op.getOutput().getType())}, write);
  op.getOutput().replaceAllUsesWith(loop.getResult(1));
  op.getState().replaceAllUsesWith(stateAs(b, op, loop.getResult(0), real));
  op.erase();
}

/// The steps in chunks of at most \p size, one after the other: the state is an
/// f64 after many. Where a step erases something of the state, roundings go
/// with it.
void writeChunks(attn::LinearAttentionOp op, int64_t size) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value powers = decayPowers(b, op, size);
  DecayProducts same = sameInEach(b, op, size, powers);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0),
        steps = op.getSizes()[op.stepDim()];
  Type real = b.getF32Type();
  bool isLong = false;
  auto write = [&](ValueRange carried, Value first, OpFoldResult length) {
    Value hasState;
    if (!op.getStart())
      hasState =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, first, zero);
    LinearChunk chunk = chunkAt(b, op, same, powers, first, length,
                                stateAs(b, op, carried[0], real), hasState);
    if (isLong)
      chunk.longState = carried[0];
    auto [rows, state] = writeChunk(b, op, chunk);
    return SmallVector<Value>{
        mutated("chunk.keep-state") ? carried[0] : state,
        insertRows(b, op, rows, carried[1], first, length)};
  };
  auto loopOver = [&](Value low, Value high, ValueRange starts) {
    return loopOverParts(b, loc, low, high, b.getIndexAttr(size), starts, write)
        .getResults();
  };
  Value some = steps;
  int64_t most = mostChunksOfF32 * size;
  std::optional<int64_t> known = getConstantIntValue(steps);
  bool areMany = !op.getErase() && (!known || *known > most);
  if (areMany) {
    some = arith::ConstantIndexOp::create(b, loc, most);
    if (!known)
      some = arith::MinSIOp::create(b, loc, some, steps);
  }
  SmallVector<Value> made(
      loopOver(zero, some,
               {op.makeStart(b),
                castTo(b, emptyOutput(b, op), op.getOutput().getType())}));
  if (areMany) {
    isLong = true;
    made[0] = stateAs(b, op, made[0], b.getF64Type());
    llvm::copy(loopOver(some, steps, made), made.begin());
    made[0] = castTo(b, stateAs(b, op, made[0], real), op.getState().getType());
  }
  op.getOutput().replaceAllUsesWith(made[1]);
  op.getState().replaceAllUsesWith(made[0]);
  op.erase();
}

/// Whether values decay each by its own.
bool decaysByValue(attn::LinearAttentionOp op) {
  return op.getDecay() &&
         llvm::any_of(llvm::seq(op.firstValue(), op.numLoops()),
                      [&](unsigned dim) {
                        return op.map(attn::LinearAttentionOp::Decay)
                            .isFunctionOfDim(dim);
                      });
}

/// Whether columns of the state are long enough for vectors and short enough
/// for the first cache, where they stay over the steps (attn-block-scans): each
/// number of them is then read and written once a step, in products with a row
/// of keys and one of queries, and nothing is computed of pairs of steps.
bool hasShortColumns(attn::LinearAttentionOp op) {
  constexpr int64_t leastColumns = 16, mostPlaces = 128;
  if (op.getNumContract() != 1 || op.getNumValue() != 1)
    return false;
  auto known = [&](unsigned dim) {
    return getConstantIntValue(op.getSizes()[dim]).value_or(0);
  };
  AffineMap values = op.map(attn::LinearAttentionOp::Values);
  for (unsigned k = 0; k + 1 < values.getNumResults(); ++k)
    if (values.getResult(k).isFunctionOfDim(op.firstValue()))
      return false; // columns lie apart
  int64_t places = known(op.firstContract());
  return places > 0 && places <= mostPlaces &&
         known(op.firstValue()) >= leastColumns;
}

/// Whether each of \p steps may be added to the state, which is rounded as
/// often: there are few, or what a step erases is rounded with it.
bool mayAddEach(attn::LinearAttentionOp op, std::optional<int64_t> steps) {
  constexpr int64_t most = 1 << 11;
  return op.getErase() || (steps && *steps <= most);
}

/// How many steps a chunk has: what a step's state costs, as often as the pairs
/// within a chunk do.
int64_t chunkSize(attn::LinearAttentionOp op) {
  if (decaysByChannel(op))
    return 16;
  auto product = [&](unsigned first, unsigned count) -> std::optional<int64_t> {
    int64_t all = 1;
    for (Value size : op.getSizes().slice(first, count)) {
      std::optional<int64_t> number = getConstantIntValue(size);
      if (!number)
        return std::nullopt;
      all *= *number;
    }
    return all;
  };
  std::optional<int64_t> e = product(op.firstContract(), op.getNumContract()),
                         f = product(op.firstValue(), op.getNumValue());
  constexpr int64_t least = 64, most = 512;
  if (!e || !f)
    return least;
  int64_t even = *e * *f / std::max<int64_t>(*e + *f, 1);
  return std::clamp(int64_t(llvm::PowerOf2Ceil(even)), least, most);
}

struct ChunkLinearAttention
    : heed::impl::AttnChunkLinearAttentionBase<ChunkLinearAttention> {
  static constexpr StringLiteral passName = "attn-chunk-linear-attention";

  void runOnOperation() override {
    SmallVector<attn::LinearAttentionOp> ops;
    getOperation().walk([&](attn::LinearAttentionOp op) { ops.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (attn::LinearAttentionOp op : ops) {
      std::optional<int64_t> steps =
          getConstantIntValue(op.getSizes()[op.stepDim()]);
      if (steps && *steps <= 1) {
        remarkDone(op, passName, "form", "one step");
        rewriter.setInsertionPoint(op);
        rewriter.replaceOp(op, *op.decomposeOperation(rewriter));
        continue;
      }
      int64_t size = chunkSize(op);
      if (decaysByValue(op)) {
        remarkDone(op, passName, "form",
                   "step by step: values decay each by its own");
        rewriter.setInsertionPoint(op);
        rewriter.replaceOp(op, *op.decomposeOperation(rewriter));
      } else if (steps && *steps <= size) {
        remarkDone(op, passName, "form",
                   format("parallel: {} steps are products of each with those "
                          "before it",
                          *steps));
        writeWhole(op, *steps);
      } else if (hasShortColumns(op) && mayAddEach(op, steps)) {
        remarkDone(op, passName, "form",
                   "sequential: columns of the state stay in the first cache");
        rewriter.setInsertionPoint(op);
        rewriter.replaceOp(op, *op.decomposeOperation(rewriter));
      } else if (hasShortColumns(op) && !op.getBefore()) {
        // As few roundings of the state as of what the steps of a chunk make.
        constexpr int64_t size = 512;
        remarkDone(op, passName, "form",
                   format("sequential within {} steps: columns of what these "
                          "make stay in the first cache, and a state from "
                          "chunk to chunk",
                          size));
        writeBlocks(op, size);
      } else if (!op.getNumValue()) {
        remarkDone(op, passName, "form",
                   "a sum of keys, which queries read: the state is no larger "
                   "than a key");
        rewriter.setInsertionPoint(op);
        SmallVector<Value> made = *op.decomposeOperation(rewriter);
        rewriter.replaceOp(op, made);
        if (roundsTooOften(steps))
          widenState(made[0].getDefiningOp<attn::ScanOp>(), 0);
      } else {
        remarkDone(
            op, passName, "form",
            format("chunked: products within {} steps{}, and a state "
                   "from chunk to chunk",
                   size,
                   decaysByChannel(op) ? " by the decays of channels" : ""));
        writeChunks(op, size);
      }
    }
  }
};

} // namespace
